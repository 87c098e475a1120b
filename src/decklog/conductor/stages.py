"""The stages of a piece as tasks of a run: each hand-over is one transaction, so that none is lost and none is made twice.

The piece is a tag and the stage is the role: a fork of a run, whose tasks have other ids, finds its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from decklog.conductor import kill_points, ladder
from decklog.core.errors import Conflict, NotFound

if TYPE_CHECKING:
    from decklog.conductor.settings.configuration import Configuration
    from decklog.conductor.settings.plan import WorkItem, WorkPlan
    from decklog.log import Decklog
    from decklog.stores.approvals.approval import Approval
    from decklog.stores.tasks.claim import Claim
    from decklog.stores.tasks.task import Task

PLAN, WORK, CHECK, LAND = "plan", "work", "check", "land"
_SHORT = {WORK: "w", CHECK: "c", LAND: "l"}
STUCK = "conductor.stuck"
_SOURCE = "source:"
_PART_OF = "part-of:"
_INTERRUPTIONS = "interruptions"
# In a question, which has its own limit.
_LONGEST_REASON = 5000
_PAGE = 200
# So many are named on record; git has all.
MOST_FILES = 200
# So often in a row something outside may end an agent or a check before a person is asked.
MOST_INTERRUPTIONS = 5
RETRY_SECONDS = 30.0


class Stages:
    """Plans the pieces of one run and hands them on from stage to stage."""

    def __init__(self, log: "Decklog", run_id: str, configuration: "Configuration") -> None:
        self._log = log
        self._run_id = run_id
        self._configuration = configuration
        self._rounds = configuration.rounds * len(configuration.workers)
        self._attempts = configuration.attempts * len(configuration.workers)
        self._is_plan_asked = configuration.is_plan_asked
        self._has_strategist = bool(configuration.strategists)

    def plan(self, plan: "WorkPlan", *, part_of: str | None = None) -> None:
        """Put a plan on record as tasks; one that is there already stays as it is. `part_of` names the piece that it replaces."""
        tasks: list[dict[str, object]] = []
        for piece in plan.pieces:
            common: dict[str, Any] = {
                "tags": [f"piece:{piece.name}"],
                "priority": piece.priority,
                "objective": piece.objective,
                "acceptance": list(piece.acceptance),
                "allowed_paths": list(piece.paths),
                "max_attempts": self._attempts,
            }
            needs = [self._name(needed) for needed in piece.needs]
            works = [
                {
                    "task_id": self._name(piece.name, WORK, 1, str(inputs.get("racer", ""))),
                    "title": piece.title,
                    "role": WORK,
                    "inputs": inputs,
                    "depends_on": needs,
                }
                for inputs in _first_inputs(piece)
            ]
            tasks += [{**common, **work} for work in works]
            more = ((_SOURCE, piece.source), (_PART_OF, part_of))
            tags = [*common["tags"], *(f"{kind}{of}" for kind, of in more if of)]
            landing = {"task_id": self._name(piece.name), "title": f"Land: {piece.title}", "role": LAND, "tags": tags}
            tasks.append({**common, **landing, "depends_on": [work["task_id"] for work in works]})
        self._log.tasks.add_many(self._run_id, tasks)

    def _name(self, piece: str, stage: str | None = None, number: int = 1, racer: str = "") -> str:
        whole = f"{self._run_id}.{piece}"
        return whole if stage is None else f"{whole}.{_SHORT[stage]}{number}{f'-{racer}' if racer else ''}"

    def landing_of(self, task: "Task") -> "Task":
        """Find the task that lands the piece of a task: the open one, if it has landed before."""
        return newest_landing(self.landings_of(task))

    def landings_of(self, task: "Task") -> "list[Task]":
        """List the tasks that land the piece of a task: one, and one more each time it is worked on after it landed."""
        tag = piece_tag(task)
        found = self._log.tasks.find(self._run_id, role=LAND, tag=tag)
        if not found:
            raise NotFound(f"run {self._run_id} has no task that lands {tag}", task_id=task.id)
        return list(found)

    # Planning

    def plan_by_agent(self, goal: str, *, is_asked: bool) -> None:
        """Put on record that a plan is to be proposed; `is_asked` has a person say yes to it before it is worked."""
        self._log.tasks.add(
            self._run_id,
            f"Plan: {goal.splitlines()[0][:100]}",
            # No piece can have this name.
            task_id=f"{self._run_id}.@plan",
            role=PLAN,
            objective=goal,
            max_attempts=2,
            inputs={"round": 1, "piece": "plan", "is_asked": is_asked},
        )

    def proposed(self, claim: "Claim", proposed: dict[str, Any]) -> None:
        """Take a proposed plan: work it, or ask a person about exactly this plan first."""
        # Whoever only looks at a run, such as the view, needs no plans.
        from decklog.conductor.settings.plan import read_back

        task = claim.task
        with self._log.transaction():
            inputs = {**task.inputs, "plan": proposed}
            if not task.inputs["is_asked"]:
                self.planned(claim, read_back(proposed))
                return
            count, piece = len(proposed["pieces"]), task.inputs["piece"]
            instead = f" in place of {piece}, which is stuck" if is_cut_anew(task) else ""
            question = f"Work this plan of {count} piece{'s' if count != 1 else ''}{instead}?"
            cause = {"rule": "plan", "reason": "a plan that an agent made is worked after a yes"}
            self._set_aside(claim, question, proposed, "the plan", source="conductor.plan", cause=cause)
            self._log.tasks.edit(task.id, reason="a plan is proposed", inputs=inputs)
            kill_points.reached("stages:proposed")

    def planned(self, claim: "Claim", plan: "WorkPlan") -> None:
        """Put the pieces of a plan that counts in place of planning it."""
        with self._log.transaction():
            claim.finish(f"{len(plan.pieces)} pieces")
            if is_cut_anew(claim.task):
                self._put_in_place(claim.task, plan)
            else:
                self.plan(plan)
            self._log.plans.record(self._run_id, plan.goal, plan.goal, [piece.title for piece in plan.pieces])
            kill_points.reached("stages:planned")

    def was_granted(self, task: "Task") -> bool:
        """Return whether a person said yes to the last question of a task."""
        question = self._question(task, is_stuck=False)
        return question is not None and question.state == "granted"

    # Hand-overs

    def worked(self, claim: "Claim", result: dict[str, object]) -> None:
        """Hand on what an attempt made: the work is done, a check of it is to be done, and landing waits for that."""
        task = claim.task
        inputs = {**task.inputs, **result}
        with self._log.transaction():
            landing = self.landing_of(task)
            claim.finish("worked", result=result)
            check = self.add(task, CHECK, int(str(inputs["round"])), inputs, f"Check: {task.title}")
            self._log.tasks.depend(landing.id, check.id)
            kill_points.reached("stages:worked")

    def passed(self, claim: "Claim", findings: list[dict[str, Any]]) -> None:
        """Hand on what the checks found good: the piece is ready to land."""
        task = claim.task
        with self._log.transaction():
            landing = self.landing_of(task)
            claim.finish("green", result={"findings": findings})
            self._log.tasks.edit(landing.id, reason=f"{task.id} is green", inputs=_fresh(task.inputs))
            ladder.end_race(self._log, landing, task)
            kill_points.reached("stages:passed")

    def outrun(self, claim: "Claim") -> None:
        """End the work or check of an agent that another one was faster than; what it cost stays on record."""
        with self._log.transaction():
            ladder.drop_out(self._log, claim, self.landing_of(claim.task), ladder.OUTRUN)

    def failed(self, claim: "Claim", findings: list[dict[str, Any]]) -> None:
        """Hand back what the checks found bad: another round with the findings; after the last one the piece is held."""
        task = claim.task
        number = int(str(task.inputs["round"]))
        with self._log.transaction():
            if ladder.racing_with(self._log, task):
                ladder.drop_out(self._log, claim, self.landing_of(task), f"red: {_signature(findings)}")
                return
            climbed = self._climbed(task, findings)
            if climbed is None:
                claim.block(_signature(findings), f"red in round {number}, and all is tried")
                self._is_stuck(task, _signature(findings), findings)
                return
            landing = self.landing_of(task)
            claim.finish("red", result={"findings": findings})
            inputs = {
                **climbed,
                "piece": task.inputs["piece"],
                "round": number + 1,
                "findings": findings,
                "base": task.inputs["base"],
                "start": task.inputs["tip"],
            }
            again = self.add(landing, WORK, number + 1, inputs, task.title.removeprefix("Check: "))
            self._log.tasks.depend(landing.id, again.id)
            kill_points.reached("stages:failed")

    def asked(self, claim: "Claim", about: bytes, findings: list[dict[str, Any]]) -> None:
        """Ask a person about exactly this change, and set the task aside until there is an answer."""
        words = ", ".join(dict.fromkeys(str(one["kind"]) for one in findings))
        with self._log.transaction():
            question = f"Let {claim.task.inputs['piece']} pass? It has {words}."
            cause = {"rule": words, "reason": "; ".join(dict.fromkeys(str(one["text"]) for one in findings if one.get("text")))}
            self._set_aside(claim, question, about, words, source="conductor", cause=cause)

    def _set_aside(
        self, claim: "Claim", question: str, about: "bytes | dict[str, Any]", what: str, *, source: str, cause: dict[str, str]
    ) -> None:
        """Ask a person about exactly one thing, and park the task until there is an answer."""
        approval = self._log.approvals.ask(
            self._run_id, question, by="conductor", about=about, task_id=claim.task.id, source=source, payload=cause
        )
        claim.park(f"waits for approval {approval.id}: {what}")

    def rework(self, claim: "Claim", target: str, findings: list[dict[str, Any]]) -> None:
        """Give a piece that could not be merged back to be worked on, based on the target as it is."""
        task = claim.task
        number = int(str(task.inputs["round"]))
        with self._log.transaction():
            climbed = self._climbed(task, findings)
            if climbed is None:
                claim.block(_signature(findings), f"could not be merged in round {number}, and all is tried")
                self._is_stuck(task, _signature(findings), findings)
                return
            claim.release(f"worked on again: {_signature(findings)}")
            inputs = {
                **climbed,
                "piece": task.inputs["piece"],
                "round": number + 1,
                "findings": findings,
                "base": target,
                "start": target,
                "earlier": task.inputs["tip"],
            }
            again = self.add(task, WORK, number + 1, inputs, task.title.removeprefix("Land: "))
            self._log.tasks.depend(task.id, again.id)
            kill_points.reached("stages:rework")

    def landed(self, claim: "Claim", commit: str, tree: str, files: Sequence[str] = ()) -> None:
        """Say that a piece is in the target, and which files it changed there."""
        result: dict[str, object] = {"commit": commit, "tree": tree, "files": list(files[:MOST_FILES])}
        with self._log.transaction():
            claim.finish(f"landed as {commit[:12]}", result=result)
            for tag in claim.task.tags:
                if tag.startswith(_SOURCE):
                    self._finish_source(tag.removeprefix(_SOURCE), commit)
            kill_points.reached("stages:landed")

    def _finish_source(self, task_id: str, commit: str) -> None:
        """Say of the task that a piece was made of that it is done, unless somebody else has it or ended it.

        So is what it was the last open part of.
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

    # What nobody here is to blame for

    def interrupted(self, claim: "Claim", why: str) -> None:
        """Give back a task whose agent or check was ended from outside; no attempt is used. After several, ask a person."""
        task = claim.task
        count = int(str(task.inputs.get(_INTERRUPTIONS, 0))) + 1
        with self._log.transaction():
            if count >= MOST_INTERRUPTIONS:
                claim.block("interrupted", why)
                self._ask_whether_to_go_on(task, f"interrupted {count} times in a row: {why}")
                return
            # Accidents happen twice; more often something is wrong with the machine.
            later = None if count <= 2 else self._log.clock.now() + timedelta(seconds=RETRY_SECONDS)
            claim.release(f"{why}; no attempt is used", not_before=later)
            self._log.tasks.edit(task.id, reason="interrupted", inputs={**task.inputs, _INTERRUPTIONS: count})

    # The ladder

    def unfinished(self, claim: "Claim", blocker: str, summary: str, *, at_once: bool = False) -> None:
        """End an attempt that is not done: the next is by the same agent, by the next one, or for a person to allow."""
        task = claim.task
        with self._log.transaction():
            climbed = ladder.climb(task.inputs, blocker, self._rungs(task), at_once=at_once)
            is_last_try = climbed is None or task.failures + 1 >= task.max_attempts
            if is_last_try and ladder.racing_with(self._log, task):
                ladder.drop_out(self._log, claim, self.landing_of(task), f"{blocker}: {summary}")
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

    def _rungs(self, task: "Task") -> int:
        return len(self._configuration.ladder(task.inputs))

    def _climbed(self, task: "Task", findings: list[dict[str, Any]]) -> dict[str, object] | None:
        """Return where a piece stands on the ladder for its next round; None when there is none."""
        inputs = task.inputs
        if int(str(inputs["round"])) >= self._rounds + int(str(inputs.get("more_rounds", 0))):
            return None
        climbed = ladder.climb(inputs, ladder.trouble_of(findings), self._rungs(task))
        return None if climbed is None else {**ladder.standing(inputs), **climbed}

    def _is_stuck(self, task: "Task", blocker: str, findings: list[dict[str, Any]]) -> None:
        """Have the strategist cut a piece anew that every agent has failed at; once, then it is for a person to say."""
        if task.role == PLAN and is_cut_anew(task):
            # There is no better cut: the question is what becomes of the piece.
            self._log.tasks.abandon(task.id, reason=f"no other plan for {task.inputs['piece']}: {blocker}")
            for stuck in self._stuck_of(task):
                self._ask_whether_to_go_on(stuck, str(stuck.blocker))
        elif task.role == PLAN or not self._has_strategist or self._was_cut(task):
            self._ask_whether_to_go_on(task, blocker)
        else:
            self._cut_anew(task, blocker, findings)

    def _was_cut(self, task: "Task") -> bool:
        """Return whether a piece came of a plan for one that was stuck, or such a plan was made for it."""
        is_part = any(tag.startswith(_PART_OF) for tag in self.landing_of(task).tags)
        return is_part or bool(self._log.tasks.find(self._run_id, role=PLAN, tag=piece_tag(task)))

    def _cut_anew(self, task: "Task", blocker: str, findings: list[dict[str, Any]]) -> None:
        landing = self.landing_of(task)
        piece = str(task.inputs["piece"])
        plans = [one for one in self._log.tasks.find(self._run_id, role=PLAN, limit=_PAGE) if not is_cut_anew(one)]
        is_asked = plans[0].inputs["is_asked"] if plans else self._is_plan_asked
        earlier = task.inputs.get("tip") or task.inputs.get("start")
        inputs = {"round": 1, "piece": piece, "is_asked": is_asked, "blocker": blocker, "findings": findings, "earlier": earlier}
        self._log.tasks.add(
            self._run_id,
            f"Plan anew: {landing.title.removeprefix('Land: ')}",
            task_id=f"{self._name(piece)}.@plan",
            role=PLAN,
            tags=[piece_tag(task)],
            priority=landing.priority,
            objective=landing.objective,
            acceptance=landing.acceptance,
            allowed_paths=landing.allowed_paths,
            max_attempts=2,
            inputs=inputs,
        )

    def _put_in_place(self, task: "Task", plan: "WorkPlan") -> None:
        """Let a piece that was stuck be landed by others, within what it might change itself."""
        stuck, landing = self._stuck_of(task), self.landing_of(task)
        if not stuck:
            return  # somebody has let it go on meanwhile
        if landing.state == "blocked":
            landing = self._log.tasks.resume(landing.id)
        bounds, priority = tuple(landing.allowed_paths), landing.priority
        parts = tuple(replace(part, paths=bounds or part.paths, priority=priority) for part in plan.pieces)
        self.plan(replace(plan, pieces=parts), part_of=str(task.inputs["piece"]))
        for part in parts:
            self._log.tasks.depend(landing.id, self._name(part.name))
        for one in stuck:
            if one.id != landing.id:
                self._log.tasks.undepend(landing.id, one.id)
                self._log.tasks.abandon(one.id, reason="other pieces are in its place")
        inputs: dict[str, object] = {"piece": task.inputs["piece"], "parts": [part.name for part in parts]}
        self._log.tasks.edit(landing.id, reason="other pieces are in its place", inputs=inputs)

    def _stuck_of(self, task: "Task") -> "list[Task]":
        """List the tasks of the same piece that nobody goes on with."""
        found = self._log.tasks.find(self._run_id, tag=piece_tag(task), state="blocked", limit=_PAGE)
        return [one for one in found if one.id != task.id]

    def names(self, *, is_open: bool = False) -> set[str]:
        """Name the pieces of the run, all of them or those that have not landed."""
        landings = [task for task in all_tasks(self._log, self._run_id) if task.role == LAND]
        return {piece_tag(task).removeprefix("piece:") for task in landings if not is_open or task.state != "done"}

    def _ask_whether_to_go_on(self, task: "Task", blocker: str) -> None:
        """Ask a person, once, about a piece for which everything was tried."""
        piece, yeses = str(task.inputs.get("piece", "it")), task.inputs.get("yeses", 0)
        reason = self._log.tasks.get(task.id).reason
        question = f"{piece} is stuck: {blocker}. Have it tried again from the first agent on? A no gives it up."
        self._log.approvals.ask(
            self._run_id,
            f"{question} The reason: {' '.join(reason.split())[-_LONGEST_REASON:]}" if reason else question,
            by="conductor",
            about={"piece": piece, "task": task.id, "blocker": blocker, "yeses": yeses},
            task_id=task.id,
            source=STUCK,
            payload={"rule": "stuck", "reason": blocker},
            key=f"stuck:{task.id}:{yeses}",
        )

    def ask_about_blocked(self) -> None:
        """Ask a person about each blocked task, as for a fork, which has no open questions of its parent.

        A task whose piece is being planned anew needs no answer.
        """
        for task in [one for one in all_tasks(self._log, self._run_id) if one.state == "blocked"]:
            plans = self._log.tasks.find(self._run_id, role=PLAN, tag=piece_tag(task)) if task.tags else []
            if not any(plan.state in ("pending", "running", "waiting") for plan in plans):
                self._ask_whether_to_go_on(task, str(task.blocker))

    def add(self, like: "Task", stage: str, number: int, inputs: dict[str, object], title: str) -> "Task":
        """Add the task of a stage of a piece, which another task of the piece describes."""
        piece = str(inputs["piece"])
        return self._log.tasks.add(
            self._run_id,
            title,
            task_id=self._name(piece, stage, number, "" if stage == LAND else str(inputs.get("racer", ""))),
            role=stage,
            tags=[piece_tag(like)],
            priority=like.priority,
            objective=like.objective,
            acceptance=like.acceptance,
            allowed_paths=like.allowed_paths,
            max_attempts=self._attempts,
            inputs=_fresh(inputs),
        )

    # What waits, and what is left

    def resume_answered(self) -> int:
        """Make tasks ready again whose question a person has answered."""
        waiting = self._log.tasks.find(self._run_id, state="waiting", limit=_PAGE)
        blocked = self._log.tasks.find(self._run_id, state="blocked", limit=_PAGE)
        if not waiting and not blocked:
            return 0
        questions, answered = self._questions(), 0
        for task in (*waiting, *blocked):
            question = questions.get((task.id, task.state == "blocked"))
            if question is not None and question.state != "open":
                answered += self._has_resumed(task, is_yes=question.state == "granted")
        return answered

    def _has_resumed(self, task: "Task", *, is_yes: bool) -> bool:
        """Let a task go on, unless another conductor was faster."""
        try:
            self._resume(task, is_yes=is_yes)
        except Conflict:
            return False
        return True

    def _resume(self, task: "Task", *, is_yes: bool) -> None:
        """Let a task go on from what a person said. A no to a question of a check is told to the next round."""
        with self._log.transaction():
            if task.state == "blocked" and not is_yes:
                self._log.tasks.abandon(task.id, reason="a person gave it up")
                return
            if task.state == "blocked":
                self._begin_ladder_again(task)
            self._log.tasks.resume(task.id)

    def resume_for(self, task: "Task", reason: str) -> None:
        """Let a task go on that waits for a person, or at which all agents failed, and take back the question about it."""
        for is_stuck in (True, False):
            question = self._question(task, is_stuck=is_stuck)
            if question is not None and question.state == "open":
                self._log.approvals.withdraw(question.id, reason=reason)
        if task.state == "blocked":
            self._begin_ladder_again(task)
        self._log.tasks.resume(task.id)

    def _begin_ladder_again(self, task: "Task") -> None:
        inputs = task.inputs
        more = {name: int(str(inputs.get(name, 0))) + by for name, by in (("more_rounds", self._rounds), ("yeses", 1))}
        self._log.tasks.edit(
            task.id,
            reason="a person lets it be tried again",
            inputs={**_fresh(inputs), **ladder.START, **more},
            max_attempts=task.failures + self._attempts,
        )

    def _question(self, task: "Task", *, is_stuck: bool) -> "Approval | None":
        """Find the newest question about a task: whether to go on with it, or whether to let its change pass."""
        return self._questions().get((task.id, is_stuck))

    def _questions(self) -> "dict[tuple[str, bool], Approval]":
        """Return the newest question about each task: whether to go on with it (True), or whether to let its change pass."""
        found: dict[tuple[str, bool], Approval] = {}
        after = None
        while True:
            page = self._log.approvals.find(self._run_id, limit=_PAGE, after=after)
            for one in page:
                found.setdefault((str(one.task_id), one.source == STUCK), one)
            if (after := page.next) is None:
                return found

    def was_denied(self, task: "Task") -> str | None:
        """Return the reason for which a person said no to the last question of a task; none is null."""
        question = self._question(task, is_stuck=False)
        if question is None or question.state in ("open", "granted"):
            return None
        return question.rationale or "a person said no"


def _first_inputs(piece: "WorkItem") -> list[dict[str, object]]:
    """Return the inputs of a piece's first round: one, or one for each agent of a race."""
    common: dict[str, object] = {"piece": piece.name, "round": 1}
    if piece.race:
        return [{**common, "wanted_agent": name, "racer": name} for name in piece.race]
    wanted = {"wanted_agent": piece.agent, "wanted_model": piece.model}
    return [{**common, **{name: value for name, value in wanted.items() if value}}]


def all_tasks(log: "Decklog", run_id: str) -> "Iterator[Task]":
    """List every task of a run."""
    after = None
    while True:
        page = log.tasks.find(run_id, limit=_PAGE, after=after)
        yield from page
        if (after := page.next) is None:
            return


def newest_landing(landings: "Sequence[Task]") -> "Task":
    """Choose the task that lands a piece next, or did so last."""
    return next((task for task in landings if task.state != "done"), landings[-1])


def is_cut_anew(task: "Task") -> bool:
    """Return whether a task is to plan a piece anew that was stuck, and not a whole run."""
    return task.role == PLAN and bool(task.tags)


def piece_tag(task: "Task") -> str:
    """Return the tag that names the piece of a task."""
    return next(tag for tag in task.tags if tag.startswith("piece:"))


def _fresh(inputs: "Mapping[str, object]") -> dict[str, object]:
    """Return inputs for another stage, which has not been interrupted yet."""
    return {name: value for name, value in inputs.items() if name != _INTERRUPTIONS}


def _signature(findings: list[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(f"{one.get('check', '')} {one['kind']}".strip() for one in findings)) or "red"
