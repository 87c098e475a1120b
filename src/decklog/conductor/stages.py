"""The stages of a piece as tasks of a run: each hand-over is one transaction, so that none is lost and none is made twice.

The piece is a tag and the stage is the role: a fork of a run, whose tasks have other ids, finds its own.
"""

from typing import TYPE_CHECKING, Any

from decklog.conductor import kill_points
from decklog.conductor.settings.plan import Plan
from decklog.errors import NotFound

if TYPE_CHECKING:
    from decklog.app import Decklog
    from decklog.stores.work.claim import Claim
    from decklog.stores.work.task import Task

WORK, CHECK, LAND = "work", "check", "land"
_SHORT = {WORK: "w", CHECK: "c"}


class Stages:
    """Plans the pieces of one run and hands them on from stage to stage."""

    def __init__(self, log: "Decklog", run_id: str, *, rounds: int, attempts: int) -> None:
        self._log = log
        self._run_id = run_id
        self._rounds = rounds
        self._attempts = attempts

    def plan(self, plan: Plan) -> None:
        """Put a plan on record as tasks; one that is there already stays as it is."""
        tasks: list[dict[str, object]] = []
        for piece in plan.pieces:
            common = {
                "tags": [f"piece:{piece.name}"],
                "priority": piece.priority,
                "objective": piece.objective,
                "acceptance": list(piece.acceptance),
                "allowed_paths": list(piece.paths),
                "max_attempts": self._attempts,
            }
            land, first = self._name(piece.name), self._name(piece.name, WORK, 1)
            inputs: dict[str, object] = {"piece": piece.name, "round": 1}
            needs = [self._name(needed) for needed in piece.needs]
            work = {"task_id": first, "title": piece.title, "role": WORK, "inputs": inputs, "depends_on": needs}
            tasks.append({**common, **work})
            tasks.append({**common, "task_id": land, "title": f"Land: {piece.title}", "role": LAND, "depends_on": [first]})
        self._log.tasks.add_many(self._run_id, tasks)

    def _name(self, piece: str, stage: str | None = None, number: int = 1) -> str:
        whole = f"{self._run_id}.{piece}"
        return whole if stage is None else f"{whole}.{_SHORT[stage]}{number}"

    def landing_of(self, task: "Task") -> "Task":
        """Find the task that lands the piece of a task."""
        tag = piece_tag(task)
        found = self._log.tasks.find(self._run_id, role=LAND, tag=tag)
        if not found:
            raise NotFound(f"run {self._run_id} has no task that lands {tag}", task_id=task.id)
        return found[0]

    # Hand-overs

    def worked(self, claim: "Claim", result: dict[str, object]) -> None:
        """Hand on what an attempt made: the work is done, a check of it is to be done, and landing waits for that."""
        task = claim.task
        inputs = {**task.inputs, **result}
        with self._log.transaction():
            landing = self.landing_of(task)
            claim.finish("worked", result=result)
            check = self._add(task, CHECK, int(str(inputs["round"])), inputs, f"Check: {task.title}")
            self._log.tasks.depend(landing.id, check.id)
            kill_points.reached("stages:worked")

    def passed(self, claim: "Claim", findings: list[dict[str, Any]]) -> None:
        """Hand on what the checks found good: the piece is ready to land."""
        task = claim.task
        with self._log.transaction():
            landing = self.landing_of(task)
            claim.finish("green", result={"findings": findings})
            self._log.tasks.edit(landing.id, reason=f"{task.id} is green", inputs=dict(task.inputs))
            kill_points.reached("stages:passed")

    def failed(self, claim: "Claim", findings: list[dict[str, Any]]) -> None:
        """Hand back what the checks found bad: another round with the findings; after the last one the piece is held."""
        task = claim.task
        number = int(str(task.inputs["round"]))
        with self._log.transaction():
            if number >= self._rounds:
                claim.block(_signature(findings), f"red in round {number}, which was the last")
                return
            landing = self.landing_of(task)
            claim.finish("red", result={"findings": findings})
            inputs = {
                "piece": task.inputs["piece"],
                "round": number + 1,
                "findings": findings,
                "base": task.inputs["base"],
                "start": task.inputs["tip"],
            }
            again = self._add(landing, WORK, number + 1, inputs, task.title.removeprefix("Check: "))
            self._log.tasks.depend(landing.id, again.id)
            kill_points.reached("stages:failed")

    def asked(self, claim: "Claim", about: bytes, findings: list[dict[str, Any]]) -> None:
        """Ask a person about exactly this change, and set the task aside until there is an answer."""
        task = claim.task
        words = ", ".join(dict.fromkeys(str(one["kind"]) for one in findings))
        with self._log.transaction():
            approval = self._log.approvals.ask(
                self._run_id,
                f"Let {task.inputs['piece']} pass? It has {words}.",
                by="conductor",
                about=about,
                task_id=task.id,
                source="conductor",
            )
            claim.park(f"waits for approval {approval.id}: {words}")

    def rework(self, claim: "Claim", target: str, findings: list[dict[str, Any]]) -> None:
        """Give a piece that could not be merged back to be worked on, based on the target as it is."""
        task = claim.task
        number = int(str(task.inputs["round"]))
        with self._log.transaction():
            if number >= self._rounds:
                claim.block(_signature(findings), f"could not be merged in round {number}, which was the last")
                return
            claim.release(f"worked on again: {_signature(findings)}")
            inputs = {
                "piece": task.inputs["piece"],
                "round": number + 1,
                "findings": findings,
                "base": target,
                "start": target,
                "earlier": task.inputs["tip"],
            }
            again = self._add(task, WORK, number + 1, inputs, task.title.removeprefix("Land: "))
            self._log.tasks.depend(task.id, again.id)
            kill_points.reached("stages:rework")

    def landed(self, claim: "Claim", commit: str, tree: str) -> None:
        """Say that a piece is in the target."""
        with self._log.transaction():
            claim.finish(f"landed as {commit[:12]}", result={"commit": commit, "tree": tree})
            kill_points.reached("stages:landed")

    def _add(self, like: "Task", stage: str, number: int, inputs: dict[str, object], title: str) -> "Task":
        piece = str(inputs["piece"])
        return self._log.tasks.add(
            self._run_id,
            title,
            task_id=self._name(piece, stage, number),
            role=stage,
            tags=[piece_tag(like)],
            priority=like.priority,
            objective=like.objective,
            acceptance=like.acceptance,
            allowed_paths=like.allowed_paths,
            max_attempts=self._attempts,
            inputs=inputs,
        )

    # What waits, and what is left

    def resume_answered(self) -> int:
        """Make tasks ready again whose question a person has answered."""
        waiting = self._log.tasks.find(self._run_id, state="waiting", limit=200)  # type: ignore[arg-type]
        answered = 0
        for task in waiting:
            questions = [one for one in self._log.approvals.find(self._run_id, limit=200) if one.task_id == task.id]
            if questions and questions[0].state.value not in ("open",):
                self._log.tasks.resume(task.id)
                answered += 1
        return answered

    def was_denied(self, task: "Task") -> str | None:
        """Give the reason for which a person said no to the last question of a task; none is null."""
        questions = [one for one in self._log.approvals.find(self._run_id, limit=200) if one.task_id == task.id]
        if not questions or questions[0].state.value in ("open", "granted"):
            return None
        return questions[0].rationale or "a person said no"


def piece_tag(task: "Task") -> str:
    """Give the tag that names the piece of a task."""
    return next(tag for tag in task.tags if tag.startswith("piece:"))


def _signature(findings: list[dict[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(f"{one.get('check', '')} {one['kind']}".strip() for one in findings)) or "red"
