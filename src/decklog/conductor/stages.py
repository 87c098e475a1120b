"""The stages of a work item as tasks of a run. Each hand-over is one transaction, so it happens exactly once.

A tag names the work item and the role the stage: a fork of a run, whose tasks have other ids, finds its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from decklog.conductor import escalation, kill_points
from decklog.conductor.plan import WorkItem, WorkPlan, read_back
from decklog.conductor.settings import Configuration
from decklog.core.errors import Conflict, NotFound
from decklog.log import Decklog
from decklog.records.record import every_page
from decklog.stores.approvals.approval import Approval
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import Task

PLAN, WORK, CHECK, LAND = "plan", "work", "check", "land"
_SHORT = {WORK: "w", CHECK: "c", LAND: "l"}
STUCK = "conductor.stuck"
_SOURCE = "source:"
_PART_OF = "part-of:"
_INTERRUPTIONS = "interruptions"
# Questions have a limit of their own.
_LONGEST_REASON = 5000
_PAGE = 200
# Recorded files of a landed change; git has all.
MOST_FILES = 200
# Interruptions of an agent or a check in a row before a question to a person.
MOST_INTERRUPTIONS = 5
RETRY_SECONDS = 30.0


class Stages:
    """Plans the work items of one run and hands them on from stage to stage."""

    def __init__(self, log: Decklog, run_id: str, configuration: Configuration) -> None:
        self._log = log
        self._run_id = run_id
        self._configuration = configuration
        self._rounds = configuration.rounds * len(configuration.workers)
        self._attempts = configuration.attempts * len(configuration.workers)

    def plan(self, plan: WorkPlan, *, part_of: str | None = None) -> None:
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
                works.append(self._name(item.name, WORK, 1, str(inputs.get("racer", ""))))
                work = {"task_id": works[-1], "title": item.title, "role": WORK, "tags": [tag], "inputs": inputs}
                tasks.append({**common, **work, "depends_on": [self._name(needed) for needed in item.needs]})
            tags = [tag, *(f"{kind}{of}" for kind, of in ((_SOURCE, item.source), (_PART_OF, part_of)) if of)]
            landing = {"task_id": self._name(item.name), "title": f"Land: {item.title}", "role": LAND, "tags": tags}
            tasks.append({**common, **landing, "depends_on": works})
        self._log.tasks.add_many(self._run_id, tasks)

    def _name(self, item: str, stage: str | None = None, number: int = 1, racer: str = "") -> str:
        whole = f"{self._run_id}.{item}"
        return whole if stage is None else f"{whole}.{_SHORT[stage]}{number}{f'-{racer}' if racer else ''}"

    def landing_of(self, task: Task) -> Task:
        """Return the task that lands the work item of a task: the open one, if it has landed before."""
        return newest_landing(self.landings_of(task))

    def landings_of(self, task: Task) -> list[Task]:
        """List the tasks that land the work item of a task: one, and one more for each round after it landed."""
        tag = item_tag(task)
        found = self._log.tasks.find(self._run_id, role=LAND, tag=tag)
        if not found:
            raise NotFound(f"run {self._run_id} has no task that lands {tag}", task_id=task.id)
        return list(found)

    # Planning

    def plan_by_agent(self, goal: str, *, is_asked: bool) -> None:
        """Add the task to propose a plan; with `is_asked` a person approves it before it is worked."""
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
        """Work a proposed plan, or ask a person about exactly this plan first."""
        task = claim.task
        with self._log.transaction():
            inputs = {**task.inputs, "plan": proposed}
            if not task.inputs["is_asked"]:
                self.work_plan(claim, read_back(proposed))
                return
            count, item = len(proposed["items"]), task.inputs["item"]
            instead = f" in place of {item}, which is stuck" if is_cut_anew(task) else ""
            question = f"Work this plan of {count} item{'s' if count != 1 else ''}{instead}?"
            cause = {"rule": "plan", "reason": "a plan of an agent needs approval"}
            self._suspend(claim, question, proposed, "the plan", source="conductor.plan", cause=cause)
            self._log.tasks.edit(task.id, reason="a plan is proposed", inputs=inputs)
            kill_points.reached("stages:proposed")

    def work_plan(self, claim: Claim, plan: WorkPlan) -> None:
        """Replace the task of planning by the work items of the plan."""
        with self._log.transaction():
            claim.finish(f"{len(plan.items)} items")
            if is_cut_anew(claim.task):
                self._put_in_place(claim.task, plan)
            else:
                self.plan(plan)
            self._log.plans.record(self._run_id, plan.goal, plan.goal, [item.title for item in plan.items])
            kill_points.reached("stages:planned")

    def was_granted(self, task: Task) -> bool:
        """Return whether a person granted the last question of a task."""
        question = self._question(task, is_stuck=False)
        return question is not None and question.state == "granted"

    # Hand-overs

    def finish_work(self, claim: Claim, result: dict[str, object]) -> None:
        """Finish the work of an attempt, and add a check of it that the landing waits for."""
        task = claim.task
        inputs = {**task.inputs, **result}
        with self._log.transaction():
            landing = self.landing_of(task)
            claim.finish("worked", result=result)
            check = self.add(task, CHECK, int(str(inputs["round"])), inputs, f"Check: {task.title}")
            self._log.tasks.depend(landing.id, check.id)
            kill_points.reached("stages:worked")

    def pass_check(self, claim: Claim, findings: list[dict[str, Any]]) -> None:
        """Finish a check that passed: the work item is ready to land."""
        task = claim.task
        with self._log.transaction():
            landing = self.landing_of(task)
            claim.finish("green", result={"findings": findings})
            self._log.tasks.edit(landing.id, reason=f"{task.id} is green", inputs=_fresh(task.inputs))
            escalation.end_race(self._log, landing, task)
            kill_points.reached("stages:passed")

    def drop_outrun(self, claim: Claim) -> None:
        """End the work or check of an agent that lost its race; its cost stays recorded."""
        with self._log.transaction():
            escalation.drop_out(self._log, claim, self.landing_of(claim.task), escalation.OUTRUN)

    def fail_check(self, claim: Claim, findings: list[dict[str, Any]]) -> None:
        """Finish a check that failed: begin another round with its findings, or block the work item after the last one."""
        task = claim.task
        with self._log.transaction():
            if escalation.racing_with(self._log, task):
                escalation.drop_out(self._log, claim, self.landing_of(task), f"red: {_signature(findings)}")
                return
            inputs = self._next_round(claim, findings, "red")
            if inputs is not None:
                claim.finish("red", result={"findings": findings})
                self._work_again(self.landing_of(task), {**inputs, "base": task.inputs["base"], "start": task.inputs["tip"]})
                kill_points.reached("stages:failed")

    def rework(self, claim: Claim, target: str, findings: list[dict[str, Any]]) -> None:
        """Begin another round of a work item that could not be merged, based on the target."""
        task = claim.task
        with self._log.transaction():
            inputs = self._next_round(claim, findings, "could not be merged")
            if inputs is not None:
                claim.release(f"worked on again: {_signature(findings)}")
                self._work_again(task, {**inputs, "base": target, "start": target, "earlier": task.inputs["tip"]})
                kill_points.reached("stages:rework")

    def _next_round(self, claim: Claim, findings: list[dict[str, Any]], problem: str) -> dict[str, object] | None:
        """Return the inputs of the next round; None if there is none, and the work item is stuck."""
        task, signature = claim.task, _signature(findings)
        number, left = int(str(task.inputs["round"])), int(str(task.inputs.get("more_rounds", 0)))
        climbed = None
        if number < self._rounds + left:
            climbed = escalation.climb(task.inputs, escalation.trouble_of(findings), len(self._configuration.levels(task.inputs)))
        if climbed is None:
            claim.block(signature, f"{problem} in round {number}; every agent has tried")
            self._is_stuck(task, signature, findings)
            return None
        kept = escalation.level_inputs(task.inputs)
        return {**kept, **climbed, "item": task.inputs["item"], "round": number + 1, "findings": findings}

    def _work_again(self, landing: Task, inputs: dict[str, object]) -> None:
        """Add the work of a round that the landing waits for."""
        again = self.add(landing, WORK, int(str(inputs["round"])), inputs, landing.title.removeprefix("Land: "))
        self._log.tasks.depend(landing.id, again.id)

    def ask_person(self, claim: Claim, about: bytes, findings: list[dict[str, Any]]) -> None:
        """Ask a person about exactly this change, and suspend the task until there is an answer."""
        words = ", ".join(dict.fromkeys(str(one["kind"]) for one in findings))
        with self._log.transaction():
            question = f"Let {claim.task.inputs['item']} pass? It has {words}."
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
        """Finish the task that a work item was made of, unless another worker has it or ended it.

        With its last subtask a parent is finished too.
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
        """Give back a task whose agent or check was ended from outside, with no attempt used. After several, ask a person."""
        task = claim.task
        count = int(str(task.inputs.get(_INTERRUPTIONS, 0))) + 1
        with self._log.transaction():
            if count >= MOST_INTERRUPTIONS:
                claim.block("interrupted", why)
                self._ask_whether_to_go_on(task, f"interrupted {count} times in a row: {why}")
                return
            # Wait after the second time: something may be wrong with the machine.
            later = None if count <= 2 else self._log.clock.now() + timedelta(seconds=RETRY_SECONDS)
            claim.release(f"{why}; no attempt is used", not_before=later)
            self._log.tasks.edit(task.id, reason="interrupted", inputs={**task.inputs, _INTERRUPTIONS: count})

    # Escalation

    def end_attempt(self, claim: Claim, blocker: str, summary: str, *, at_once: bool = False) -> None:
        """End an attempt that is not done. The next is by the same agent or by the next level, or a person decides."""
        task = claim.task
        with self._log.transaction():
            climbed = escalation.climb(task.inputs, blocker, len(self._configuration.levels(task.inputs)), at_once=at_once)
            is_last_try = climbed is None or task.failures + 1 >= task.max_attempts
            if is_last_try and escalation.racing_with(self._log, task):
                escalation.drop_out(self._log, claim, self.landing_of(task), f"{blocker}: {summary}")
                return
            if climbed is None and task.failures + 1 < task.max_attempts:
                ended = claim.block(blocker, summary)
            else:
                ended = claim.fail(summary, blocker=blocker)
            if ended.state == "blocked":
                self._is_stuck(task, blocker, [{"kind": blocker, "text": summary}])
            elif climbed is not None:
                self._log.tasks.edit(task.id, reason=f"after {blocker}", inputs={**task.inputs, **climbed})
            kill_points.reached("stages:unfinished")

    def _is_stuck(self, task: Task, blocker: str, findings: list[dict[str, Any]]) -> None:
        """Have a strategist plan a stuck work item anew, once; then a person decides."""
        if task.role == PLAN and is_cut_anew(task):
            # There is no better plan, so a person decides about the work item.
            self._log.tasks.abandon(task.id, reason=f"no other plan for {task.inputs['item']}: {blocker}")
            for stuck in self._stuck_of(task):
                self._ask_whether_to_go_on(stuck, str(stuck.blocker))
        elif task.role == PLAN or not self._configuration.strategists or self._was_cut(task):
            self._ask_whether_to_go_on(task, blocker)
        else:
            self._cut_anew(task, blocker, findings)

    def _was_cut(self, task: Task) -> bool:
        """Return whether a work item replaces a stuck one, or was planned anew itself."""
        is_part = any(tag.startswith(_PART_OF) for tag in self.landing_of(task).tags)
        return is_part or bool(self._log.tasks.find(self._run_id, role=PLAN, tag=item_tag(task)))

    def _cut_anew(self, task: Task, blocker: str, findings: list[dict[str, Any]]) -> None:
        landing = self.landing_of(task)
        item = str(task.inputs["item"])
        plans = [one for one in self._log.tasks.find(self._run_id, role=PLAN, limit=_PAGE) if not is_cut_anew(one)]
        is_asked = plans[0].inputs["is_asked"] if plans else self._configuration.is_plan_asked
        earlier = task.inputs.get("tip") or task.inputs.get("start")
        inputs = {"round": 1, "item": item, "is_asked": is_asked, "blocker": blocker, "findings": findings, "earlier": earlier}
        self._log.tasks.add(
            self._run_id,
            f"Plan anew: {landing.title.removeprefix('Land: ')}",
            task_id=f"{self._name(item)}.@plan",
            role=PLAN,
            tags=[item_tag(task)],
            priority=landing.priority,
            objective=landing.objective,
            acceptance=landing.acceptance,
            allowed_paths=landing.allowed_paths,
            max_attempts=2,
            inputs=inputs,
        )

    def _put_in_place(self, task: Task, plan: WorkPlan) -> None:
        """Replace a stuck work item by others, within its own allowed paths."""
        stuck, landing = self._stuck_of(task), self.landing_of(task)
        if not stuck:
            return  # a person has resumed it meanwhile
        if landing.state == "blocked":
            landing = self._log.tasks.resume(landing.id)
        bounds, priority = tuple(landing.allowed_paths), landing.priority
        parts = tuple(replace(part, paths=bounds or part.paths, priority=priority) for part in plan.items)
        self.plan(replace(plan, items=parts), part_of=str(task.inputs["item"]))
        for part in parts:
            self._log.tasks.depend(landing.id, self._name(part.name))
        for one in stuck:
            if one.id != landing.id:
                self._log.tasks.undepend(landing.id, one.id)
                self._log.tasks.abandon(one.id, reason="other items are in its place")
        inputs: dict[str, object] = {"item": task.inputs["item"], "parts": [part.name for part in parts]}
        self._log.tasks.edit(landing.id, reason="other items are in its place", inputs=inputs)

    def _stuck_of(self, task: Task) -> list[Task]:
        """List the blocked tasks of the same work item."""
        found = self._log.tasks.find(self._run_id, tag=item_tag(task), state="blocked", limit=_PAGE)
        return [one for one in found if one.id != task.id]

    def names(self, *, is_open: bool = False) -> set[str]:
        """Return the names of the work items of the run, all of them or those that have not landed."""
        landings = [task for task in all_tasks(self._log, self._run_id) if task.role == LAND]
        return {item_name(task) for task in landings if not is_open or task.state != "done"}

    def _ask_whether_to_go_on(self, task: Task, blocker: str) -> None:
        """Ask a person, once, about a work item for which everything was tried."""
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
        """Ask a person about each blocked task, as for a fork, which has no open questions of its parent.

        A work item that is being planned anew needs no answer.
        """
        for task in [one for one in all_tasks(self._log, self._run_id) if one.state == "blocked"]:
            plans = self._log.tasks.find(self._run_id, role=PLAN, tag=item_tag(task)) if task.tags else []
            if not any(plan.state in ("pending", "running", "waiting") for plan in plans):
                self._ask_whether_to_go_on(task, str(task.blocker))

    def add(self, like: Task, stage: str, number: int, inputs: dict[str, object], title: str) -> Task:
        """Add the task of a stage, described as another task of the same work item."""
        item = str(inputs["item"])
        return self._log.tasks.add(
            self._run_id,
            title,
            task_id=self._name(item, stage, number, "" if stage == LAND else str(inputs.get("racer", ""))),
            role=stage,
            tags=[item_tag(like)],
            priority=like.priority,
            objective=like.objective,
            acceptance=like.acceptance,
            allowed_paths=like.allowed_paths,
            max_attempts=self._attempts,
            inputs=_fresh(inputs),
        )

    # Answers of people

    def resume_answered(self) -> int:
        """Resume tasks whose question a person has answered."""
        waiting = self._log.tasks.find(self._run_id, state="waiting", limit=_PAGE)
        blocked = self._log.tasks.find(self._run_id, state="blocked", limit=_PAGE)
        if not waiting and not blocked:
            return 0
        questions, answered = self._questions(), 0
        for task in (*waiting, *blocked):
            question = questions.get((task.id, task.state == "blocked"))
            if question is not None and question.state != "open":
                answered += self._has_resumed(task, is_granted=question.state == "granted")
        return answered

    def _has_resumed(self, task: Task, *, is_granted: bool) -> bool:
        """Resume a task by the answer of a person, unless another conductor was faster."""
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
            question = self._question(task, is_stuck=is_stuck)
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
            reason="a person lets it be tried again",
            inputs={**_fresh(inputs), **escalation.START, **more},
            max_attempts=task.failures + self._attempts,
        )

    def _question(self, task: Task, *, is_stuck: bool) -> Approval | None:
        """Return the newest question about a task: whether to go on with it, or whether its change passes."""
        return self._questions().get((task.id, is_stuck))

    def _questions(self) -> dict[tuple[str, bool], Approval]:
        """Return the newest question about each task: whether to go on with it (True), or whether its change passes."""
        found: dict[tuple[str, bool], Approval] = {}
        for one in every_page(self._log.approvals.find, self._run_id):
            found.setdefault((str(one.task_id), one.source == STUCK), one)
        return found

    def was_denied(self, task: Task) -> str | None:
        """Return the reason for which a person denied the last question of a task; None if it was not denied."""
        question = self._question(task, is_stuck=False)
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
    return every_page(log.tasks.find, run_id)


def newest_landing(landings: Sequence[Task]) -> Task:
    """Return the task that lands a work item next, or did so last."""
    return next((task for task in landings if task.state != "done"), landings[-1])


def is_cut_anew(task: Task) -> bool:
    """Return whether a task plans a stuck work item anew, and not a whole run."""
    return task.role == PLAN and bool(task.tags)


def item_tag(task: Task) -> str:
    """Return the tag that names the work item of a task."""
    return next(tag for tag in task.tags if tag.startswith("item:"))


def item_name(task: Task) -> str:
    """Return the name of the work item of a task."""
    return item_tag(task).removeprefix("item:")


def _fresh(inputs: Mapping[str, object]) -> dict[str, object]:
    """Return inputs for another stage, without the count of interruptions."""
    return {name: value for name, value in inputs.items() if name != _INTERRUPTIONS}


def _signature(findings: list[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(f"{one.get('check', '')} {one['kind']}".strip() for one in findings)) or "red"
