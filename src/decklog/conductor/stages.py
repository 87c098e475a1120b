"""The stages of a work item, stored as tasks of a run. Each change of stage is one transaction, so it happens exactly once.

A task's tag names its work item and its role the stage. So a fork, whose tasks have other ids, finds its own tasks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from decklog.conductor import escalation, kill_points
from decklog.conductor.plan import WorkItem, WorkPlan, parse_stored
from decklog.conductor.settings import Configuration
from decklog.core.errors import Conflict, NotFound
from decklog.log import Decklog
from decklog.records.record import find_all
from decklog.stores.approvals.approval import Approval
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import Task

PLAN, WORK, CHECK, LAND = "plan", "work", "check", "land"
_TASK_LETTERS = {WORK: "w", CHECK: "c", LAND: "l"}
STUCK = "conductor.stuck"
_SOURCE = "source:"
_PART_OF = "part-of:"
_INTERRUPTIONS = "interruptions"
# The text of a question is limited.
_LONGEST_REASON = 5000
_PAGE = 200
# Files recorded for a landed change; git has them all.
MOST_FILES = 200
# Ask a person after this many interruptions in a row.
MOST_INTERRUPTIONS = 5
RETRY_SECONDS = 30.0


class Stages:
    """Adds the work items of one run as tasks and moves them from stage to stage."""

    def __init__(self, log: Decklog, run_id: str, configuration: Configuration) -> None:
        self._log = log
        self._run_id = run_id
        self._configuration = configuration
        self._rounds = configuration.rounds * len(configuration.workers)
        self._attempts = configuration.attempts * len(configuration.workers)

    def add_plan(self, plan: WorkPlan, *, part_of: str | None = None) -> None:
        """Add a plan as tasks, unless they exist. `part_of` names the work item that it replaces."""
        tasks: list[dict[str, object]] = []
        for item in plan.items:
            common: dict[str, Any] = {
                "priority": item.priority,
                "objective": item.objective,
                "acceptance": list(item.acceptance),
                "allowed_paths": list(item.paths),
                "max_attempts": self._attempts,
            }
            tag, works = f"item:{item.name}", []
            for inputs in _first_inputs(item):
                works.append(self._task_id(item.name, WORK, 1, str(inputs.get("racer", ""))))
                work = {"task_id": works[-1], "title": item.title, "role": WORK, "tags": [tag], "inputs": inputs}
                tasks.append({**common, **work, "depends_on": [self._task_id(needed) for needed in item.needs]})
            tags = [tag, *(f"{kind}{of}" for kind, of in ((_SOURCE, item.source), (_PART_OF, part_of)) if of)]
            landing = {"task_id": self._task_id(item.name), "title": f"Land: {item.title}", "role": LAND, "tags": tags}
            tasks.append({**common, **landing, "depends_on": works})
        self._log.tasks.add_many(self._run_id, tasks)

    def _task_id(self, item: str, stage: str | None = None, number: int = 1, racer: str = "") -> str:
        whole = f"{self._run_id}.{item}"
        return whole if stage is None else f"{whole}.{_TASK_LETTERS[stage]}{number}{f'-{racer}' if racer else ''}"

    def landing_of(self, task: Task) -> Task:
        """Return the landing task of a task's work item: the open one, or the last one."""
        return newest_landing(self.landings_of(task))

    def landings_of(self, task: Task) -> list[Task]:
        """List the landing tasks of a task's work item. Each round after a landing adds one."""
        tag = item_tag(task)
        found = self._log.tasks.find(self._run_id, role=LAND, tag=tag)
        if not found:
            raise NotFound(f"run {self._run_id} has no landing task for {tag}", task_id=task.id)
        return list(found)

    # Planning

    def add_planning_task(self, goal: str, *, is_asked: bool) -> None:
        """Add the task of planning. With `is_asked` a person approves the plan before work starts."""
        self._log.tasks.add(
            self._run_id,
            f"Plan: {goal.splitlines()[0][:100]}",
            # No work item can have this name.
            task_id=f"{self._run_id}.@plan",
            role=PLAN,
            objective=goal,
            max_attempts=2,
            inputs={"round": 1, "item": "plan", "is_asked": is_asked},
        )

    def propose_plan(self, claim: Claim, proposed: dict[str, Any]) -> None:
        """Apply a proposed plan, or first ask a person to approve exactly this plan."""
        task = claim.task
        with self._log.transaction():
            inputs = {**task.inputs, "plan": proposed}
            if not task.inputs["is_asked"]:
                self.apply_plan(claim, parse_stored(proposed))
                return
            count, item = len(proposed["items"]), task.inputs["item"]
            instead = f" in place of {item}, which is stuck" if is_replanning(task) else ""
            question = f"Work this plan of {count} item{'s' if count != 1 else ''}{instead}?"
            cause = {"rule": "plan", "reason": "a plan of an agent needs approval"}
            self._suspend(claim, question, proposed, "the plan", source="conductor.plan", cause=cause)
            self._log.tasks.edit(task.id, reason="a plan is proposed", inputs=inputs)
            kill_points.reached("stages:proposed")

    def apply_plan(self, claim: Claim, plan: WorkPlan) -> None:
        """Finish the task of planning, and add the work items of the plan."""
        with self._log.transaction():
            claim.finish(f"{len(plan.items)} items")
            if is_replanning(claim.task):
                self._replace_stuck_item(claim.task, plan)
            else:
                self.add_plan(plan)
            self._log.plans.record(self._run_id, plan.goal, plan.goal, [item.title for item in plan.items])
            kill_points.reached("stages:planned")

    def was_granted(self, task: Task) -> bool:
        """Return whether a person granted the newest question about a task."""
        question = self._newest_question(task, is_stuck=False)
        return question is not None and question.state == "granted"

    # Changes of stage

    def finish_work(self, claim: Claim, result: dict[str, object]) -> None:
        """Finish the work of an attempt, and add its check, which the landing waits for."""
        task = claim.task
        inputs = {**task.inputs, **result}
        with self._log.transaction():
            landing = self.landing_of(task)
            claim.finish("worked", result=result)
            check = self.add_task(task, CHECK, int(str(inputs["round"])), inputs, f"Check: {task.title}")
            self._log.tasks.depend(landing.id, check.id)
            kill_points.reached("stages:worked")

    def pass_check(self, claim: Claim, findings: list[dict[str, Any]]) -> None:
        """Finish a check that passed: the work item is ready to land."""
        task = claim.task
        with self._log.transaction():
            landing = self.landing_of(task)
            claim.finish("green", result={"findings": findings})
            self._log.tasks.edit(landing.id, reason=f"{task.id} is green", inputs=_without_interruptions(task.inputs))
            escalation.end_race(self._log, landing, task)
            kill_points.reached("stages:passed")

    def drop_race_loser(self, claim: Claim) -> None:
        """End the work or check of an agent that lost its race; its cost stays recorded."""
        with self._log.transaction():
            escalation.leave_race(self._log, claim, self.landing_of(claim.task), escalation.LOST_RACE)

    def fail_check(self, claim: Claim, findings: list[dict[str, Any]]) -> None:
        """Finish a failed check. Begin another round with its findings, or block the work item after the last round."""
        task = claim.task
        with self._log.transaction():
            if escalation.find_rivals(self._log, task):
                escalation.leave_race(self._log, claim, self.landing_of(task), f"red: {_signature(findings)}")
                return
            inputs = self._next_round(claim, findings, "red")
            if inputs is not None:
                claim.finish("red", result={"findings": findings})
                self._add_work(self.landing_of(task), {**inputs, "base": task.inputs["base"], "start": task.inputs["tip"]})
                kill_points.reached("stages:failed")

    def rework(self, claim: Claim, target: str, findings: list[dict[str, Any]]) -> None:
        """Begin another round, based on the target, of a work item that could not be merged."""
        task = claim.task
        with self._log.transaction():
            inputs = self._next_round(claim, findings, "could not be merged")
            if inputs is not None:
                claim.release(f"worked on again: {_signature(findings)}")
                self._add_work(task, {**inputs, "base": target, "start": target, "earlier": task.inputs["tip"]})
                kill_points.reached("stages:rework")

    def _next_round(self, claim: Claim, findings: list[dict[str, Any]], problem: str) -> dict[str, object] | None:
        """Return the inputs of the next round. After the last round, block the work item and return None."""
        task, signature = claim.task, _signature(findings)
        number, left = int(str(task.inputs["round"])), int(str(task.inputs.get("more_rounds", 0)))
        escalated = None
        if number < self._rounds + left:
            levels = len(self._configuration.levels(task.inputs))
            escalated = escalation.escalate(task.inputs, escalation.digest_findings(findings), levels)
        if escalated is None:
            claim.block(signature, f"{problem} in round {number}; every agent has tried")
            self._handle_stuck(task, signature, findings)
            return None
        kept = escalation.level_inputs(task.inputs)
        return {**kept, **escalated, "item": task.inputs["item"], "round": number + 1, "findings": findings}

    def _add_work(self, landing: Task, inputs: dict[str, object]) -> None:
        """Add the work task of a round, which the landing waits for."""
        again = self.add_task(landing, WORK, int(str(inputs["round"])), inputs, landing.title.removeprefix("Land: "))
        self._log.tasks.depend(landing.id, again.id)

    def ask_person(self, claim: Claim, about: bytes, findings: list[dict[str, Any]]) -> None:
        """Ask a person about exactly this change, and suspend the task until there is an answer."""
        words = ", ".join(dict.fromkeys(str(one["kind"]) for one in findings))
        with self._log.transaction():
            question = f"Let {claim.task.inputs['item']} pass? Findings: {words}."
            cause = {"rule": words, "reason": "; ".join(dict.fromkeys(str(one["text"]) for one in findings if one.get("text")))}
            self._suspend(claim, question, about, words, source="conductor", cause=cause)

    def _suspend(
        self, claim: Claim, question: str, about: bytes | dict[str, Any], what: str, *, source: str, cause: dict[str, str]
    ) -> None:
        """Ask a person about exactly one thing, and suspend the task until there is an answer."""
        approval = self._log.approvals.ask(
            self._run_id, question, by="conductor", about=about, task_id=claim.task.id, source=source, payload=cause
        )
        claim.park(f"waits for approval {approval.id}: {what}")

    def record_landing(self, claim: Claim, commit: str, tree: str, files: Sequence[str] = ()) -> None:
        """Record that a work item has landed, and which files it changed."""
        result: dict[str, object] = {"commit": commit, "tree": tree, "files": list(files[:MOST_FILES])}
        with self._log.transaction():
            claim.finish(f"landed as {commit[:12]}", result=result)
            for tag in claim.task.tags:
                if tag.startswith(_SOURCE):
                    self._finish_source(tag.removeprefix(_SOURCE), commit)
            kill_points.reached("stages:landed")

    def _finish_source(self, task_id: str, commit: str) -> None:
        """Finish the task that a work item was built from, unless another worker has claimed or ended it.

        A parent task is finished with its last subtask.
        """
        task = self._log.tasks.get(task_id)
        if task.state == "blocked":
            task = self._log.tasks.resume(task_id)
        if task.state == "pending" and task.open_dependencies == 0:
            taken = self._log.tasks.claim(task.run_id, worker="conductor", task_id=task_id, lease_seconds=60.0)
            if taken is not None:
                taken.finish(f"landed as {commit[:12]} in run {self._run_id}")
                for whole in self._log.tasks.dependencies(task_id, kind="parent"):
                    parts = self._log.tasks.subtasks(whole)
                    if parts["done"] == parts["count"]:
                        self._finish_source(whole, commit)

    # Interruptions

    def interrupt(self, claim: Claim, why: str) -> None:
        """Release a task whose agent or check was killed from outside; no attempt is used. After several, ask a person."""
        task = claim.task
        count = int(str(task.inputs.get(_INTERRUPTIONS, 0))) + 1
        with self._log.transaction():
            if count >= MOST_INTERRUPTIONS:
                claim.block("interrupted", why)
                self._ask_about_stuck(task, f"interrupted {count} times in a row: {why}")
                return
            # Wait from the third interruption on: something may be wrong with the machine.
            later = None if count <= 2 else self._log.clock.now() + timedelta(seconds=RETRY_SECONDS)
            claim.release(f"{why}; no attempt is used", not_before=later)
            self._log.tasks.edit(task.id, reason="interrupted", inputs={**task.inputs, _INTERRUPTIONS: count})

    # Escalation

    def end_attempt(self, claim: Claim, blocker: str, summary: str, *, at_once: bool = False) -> None:
        """End a failed attempt. The same agent or the next level tries again, or a person decides."""
        task = claim.task
        with self._log.transaction():
            escalated = escalation.escalate(task.inputs, blocker, len(self._configuration.levels(task.inputs)), at_once=at_once)
            is_last_try = escalated is None or task.failures + 1 >= task.max_attempts
            if is_last_try and escalation.find_rivals(self._log, task):
                escalation.leave_race(self._log, claim, self.landing_of(task), f"{blocker}: {summary}")
                return
            if escalated is None and task.failures + 1 < task.max_attempts:
                ended = claim.block(blocker, summary)
            else:
                ended = claim.fail(summary, blocker=blocker)
            if ended.state == "blocked":
                self._handle_stuck(task, blocker, [{"kind": blocker, "text": summary}])
            elif escalated is not None:
                self._log.tasks.edit(task.id, reason=f"after {blocker}", inputs={**task.inputs, **escalated})
            kill_points.reached("stages:unfinished")

    def _handle_stuck(self, task: Task, blocker: str, findings: list[dict[str, Any]]) -> None:
        """Have a strategist replan a stuck work item once; after that a person decides."""
        if task.role == PLAN and is_replanning(task):
            # Replanning failed, so a person decides about the work item.
            self._log.tasks.abandon(task.id, reason=f"no other plan for {task.inputs['item']}: {blocker}")
            for stuck in self._find_blocked(task):
                self._ask_about_stuck(stuck, str(stuck.blocker))
        elif task.role == PLAN or not self._configuration.strategists or self._was_replanned(task):
            self._ask_about_stuck(task, blocker)
        else:
            self._replan(task, blocker, findings)

    def _was_replanned(self, task: Task) -> bool:
        """Return whether a work item was replanned or comes from a replanned one."""
        is_part = any(tag.startswith(_PART_OF) for tag in self.landing_of(task).tags)
        return is_part or bool(self._log.tasks.find(self._run_id, role=PLAN, tag=item_tag(task)))

    def _replan(self, task: Task, blocker: str, findings: list[dict[str, Any]]) -> None:
        landing = self.landing_of(task)
        item = str(task.inputs["item"])
        plans = [one for one in self._log.tasks.find(self._run_id, role=PLAN, limit=_PAGE) if not is_replanning(one)]
        is_asked = plans[0].inputs["is_asked"] if plans else self._configuration.is_plan_asked
        earlier = task.inputs.get("tip") or task.inputs.get("start")
        inputs = {"round": 1, "item": item, "is_asked": is_asked, "blocker": blocker, "findings": findings, "earlier": earlier}
        self._log.tasks.add(
            self._run_id,
            f"Plan anew: {landing.title.removeprefix('Land: ')}",
            task_id=f"{self._task_id(item)}.@plan",
            role=PLAN,
            tags=[item_tag(task)],
            priority=landing.priority,
            objective=landing.objective,
            acceptance=landing.acceptance,
            allowed_paths=landing.allowed_paths,
            max_attempts=2,
            inputs=inputs,
        )

    def _replace_stuck_item(self, task: Task, plan: WorkPlan) -> None:
        """Replace a stuck work item by new ones, within its allowed paths."""
        stuck, landing = self._find_blocked(task), self.landing_of(task)
        if not stuck:
            return  # a person has resumed it meanwhile
        if landing.state == "blocked":
            landing = self._log.tasks.resume(landing.id)
        bounds, priority = tuple(landing.allowed_paths), landing.priority
        parts = tuple(replace(part, paths=bounds or part.paths, priority=priority) for part in plan.items)
        self.add_plan(replace(plan, items=parts), part_of=str(task.inputs["item"]))
        for part in parts:
            self._log.tasks.depend(landing.id, self._task_id(part.name))
        for one in stuck:
            if one.id != landing.id:
                self._log.tasks.undepend(landing.id, one.id)
                self._log.tasks.abandon(one.id, reason="other items are in its place")
        inputs: dict[str, object] = {"item": task.inputs["item"], "parts": [part.name for part in parts]}
        self._log.tasks.edit(landing.id, reason="other items are in its place", inputs=inputs)

    def _find_blocked(self, task: Task) -> list[Task]:
        """List the blocked tasks of the same work item."""
        found = self._log.tasks.find(self._run_id, tag=item_tag(task), state="blocked", limit=_PAGE)
        return [one for one in found if one.id != task.id]

    def item_names(self, *, is_open: bool = False) -> set[str]:
        """Return the names of the work items of the run, all of them or those that have not landed."""
        landings = [task for task in all_tasks(self._log, self._run_id) if task.role == LAND]
        return {item_name(task) for task in landings if not is_open or task.state != "done"}

    def _ask_about_stuck(self, task: Task, blocker: str) -> None:
        """Ask a person, once, whether to retry a stuck work item or give it up."""
        item, yeses = str(task.inputs.get("item", "it")), task.inputs.get("yeses", 0)
        reason = self._log.tasks.get(task.id).reason
        why = f" ({' '.join(reason.split())[-_LONGEST_REASON:]})" if reason else ""
        self._log.approvals.ask(
            self._run_id,
            f"Item {item} is stuck: {blocker}{why}. Retry it from the first agent on? Denying gives it up.",
            by="conductor",
            about={"item": item, "task": task.id, "blocker": blocker, "yeses": yeses},
            task_id=task.id,
            source=STUCK,
            payload={"rule": "stuck", "reason": blocker},
            key=f"stuck:{task.id}:{yeses}",
        )

    def ask_about_blocked(self) -> None:
        """Ask a person about each blocked task of a fork, which does not copy its parent's open questions.

        A work item that is being replanned needs no answer.
        """
        for task in [one for one in all_tasks(self._log, self._run_id) if one.state == "blocked"]:
            plans = self._log.tasks.find(self._run_id, role=PLAN, tag=item_tag(task)) if task.tags else []
            if not any(plan.state in ("pending", "running", "waiting") for plan in plans):
                self._ask_about_stuck(task, str(task.blocker))

    def add_task(self, like: Task, stage: str, number: int, inputs: dict[str, object], title: str) -> Task:
        """Add the task of a stage, with the description of another task of its work item."""
        item = str(inputs["item"])
        return self._log.tasks.add(
            self._run_id,
            title,
            task_id=self._task_id(item, stage, number, "" if stage == LAND else str(inputs.get("racer", ""))),
            role=stage,
            tags=[item_tag(like)],
            priority=like.priority,
            objective=like.objective,
            acceptance=like.acceptance,
            allowed_paths=like.allowed_paths,
            max_attempts=self._attempts,
            inputs=_without_interruptions(inputs),
        )

    # Answers of people

    def resume_answered(self) -> int:
        """Resume the tasks whose question a person has answered; return how many."""
        waiting = self._log.tasks.find(self._run_id, state="waiting", limit=_PAGE)
        blocked = self._log.tasks.find(self._run_id, state="blocked", limit=_PAGE)
        if not waiting and not blocked:
            return 0
        questions, answered = self._newest_questions(), 0
        for task in (*waiting, *blocked):
            question = questions.get((task.id, task.state == "blocked"))
            if question is not None and question.state != "open":
                answered += self._resume_by_answer(task, is_granted=question.state == "granted")
        return answered

    def _resume_by_answer(self, task: Task, *, is_granted: bool) -> bool:
        """Resume or abandon a task by a person's answer. Return False if another conductor was faster."""
        try:
            with self._log.transaction():
                if task.state == "blocked" and not is_granted:
                    self._log.tasks.abandon(task.id, reason="a person gave it up")
                    return True
                if task.state == "blocked":
                    self._reset_escalation(task)
                self._log.tasks.resume(task.id)
        except Conflict:
            return False
        return True

    def resume_for(self, task: Task, reason: str) -> None:
        """Resume a task that waits for a person or is stuck, and withdraw the question about it."""
        for is_stuck in (True, False):
            question = self._newest_question(task, is_stuck=is_stuck)
            if question is not None and question.state == "open":
                self._log.approvals.withdraw(question.id, reason=reason)
        if task.state == "blocked":
            self._reset_escalation(task)
        self._log.tasks.resume(task.id)

    def _reset_escalation(self, task: Task) -> None:
        inputs = task.inputs
        more = {name: int(str(inputs.get(name, 0))) + by for name, by in (("more_rounds", self._rounds), ("yeses", 1))}
        self._log.tasks.edit(
            task.id,
            reason="a person asked for a retry",
            inputs={**_without_interruptions(inputs), **escalation.START, **more},
            max_attempts=task.failures + self._attempts,
        )

    def _newest_question(self, task: Task, *, is_stuck: bool) -> Approval | None:
        """Return the newest question about a task: whether to retry it (`is_stuck`), or whether its change passes."""
        return self._newest_questions().get((task.id, is_stuck))

    def _newest_questions(self) -> dict[tuple[str, bool], Approval]:
        """Return the newest question for each task id and whether it is about a stuck task."""
        found: dict[tuple[str, bool], Approval] = {}
        for one in find_all(self._log.approvals.find, self._run_id):
            found.setdefault((str(one.task_id), one.source == STUCK), one)
        return found

    def was_denied(self, task: Task) -> str | None:
        """Return why a person denied the newest question about a task; None if it was not denied."""
        question = self._newest_question(task, is_stuck=False)
        if question is None or question.state in ("open", "granted"):
            return None
        return question.rationale or "a person said no"


def _first_inputs(item: WorkItem) -> list[dict[str, object]]:
    """Return the inputs of the first round of a work item: one, or one for each agent of a race."""
    common: dict[str, object] = {"item": item.name, "round": 1}
    if item.race:
        return [{**common, "wanted_agent": name, "racer": name} for name in item.race]
    wanted = {"wanted_agent": item.agent, "wanted_model": item.model}
    return [{**common, **{name: value for name, value in wanted.items() if value}}]


def all_tasks(log: Decklog, run_id: str) -> Iterator[Task]:
    """Yield every task of a run."""
    return find_all(log.tasks.find, run_id)


def newest_landing(landings: Sequence[Task]) -> Task:
    """Return the open landing task of a work item, or the last one."""
    return next((task for task in landings if task.state != "done"), landings[-1])


def is_replanning(task: Task) -> bool:
    """Return whether a task replans a stuck work item instead of planning a whole run."""
    return task.role == PLAN and bool(task.tags)


def item_tag(task: Task) -> str:
    """Return the tag that names the work item of a task."""
    return next(tag for tag in task.tags if tag.startswith("item:"))


def item_name(task: Task) -> str:
    """Return the name of the work item of a task."""
    return item_tag(task).removeprefix("item:")


def _without_interruptions(inputs: Mapping[str, object]) -> dict[str, object]:
    """Return the inputs for another stage, without the count of interruptions."""
    return {name: value for name, value in inputs.items() if name != _INTERRUPTIONS}


def _signature(findings: list[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(f"{one.get('check', '')} {one['kind']}".strip() for one in findings)) or "red"
