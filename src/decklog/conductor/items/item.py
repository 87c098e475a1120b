"""A work item of a run: its tasks, its change so far, and the messages that begin another round.

A message of a person is an inbox message to the item's landing task. It is pending until it is delivered to an agent, then seen,
and answered when the item lands. A pending message keeps the item from landing: another round begins instead.
"""

from dataclasses import dataclass
from typing import Any

from decklog.conductor import escalation, kill_points
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.conductor.git.workspaces import Workspace, snapshot
from decklog.conductor.stages import CHECK, LAND, WORK, item_name, item_tag, newest_landing
from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.log import Decklog
from decklog.records.record import find_all
from decklog.stores.approvals.inbox import Message, MessageStateLike
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import Task

_MOST_TASKS = 200
# The key of a work task's inputs that names the person who works on it by hand.
BY_HAND = "by_hand"


@dataclass(frozen=True)
class Item:
    """A work item: the tasks of all its rounds, in the order in which they were added."""

    run_id: str
    name: str
    tasks: tuple[Task, ...]

    @property
    def landing(self) -> Task:
        """Its landing task: the open one, or the last one."""
        return newest_landing([task for task in self.tasks if task.role == LAND])

    @property
    def is_landed(self) -> bool:
        return self.landing.state == "done"

    @property
    def landed_commit(self) -> str:
        """The newest landed commit that changed files. A round that only answered a question changes none."""
        results: list[Any] = [task.result for task in self.tasks if task.role == LAND and task.state == "done"]
        return str(next((one for one in reversed(results) if one.get("files")), results[-1])["commit"])

    @property
    def is_over(self) -> bool:
        """Whether it has landed or was given up."""
        return self.landing.state.value in ("done", "abandoned")

    @property
    def open_tasks(self) -> list[Task]:
        """The tasks that are neither done nor given up."""
        return [task for task in self.tasks if task.state.value not in ("done", "abandoned")]

    @property
    def work(self) -> Task | None:
        """Its open work task; None between rounds."""
        return next((task for task in reversed(self.open_tasks) if task.role == WORK), None)


def split_name(text: str) -> tuple[str | None, str]:
    """Split ITEM or RUN.ITEM into the run, None if it is not named, and the item."""
    run_id, _, name = text.rpartition(".")
    if not name:
        raise Invalid(f"{text!r} is not the name of a work item", hint="Write ITEM, or RUN.ITEM.", field="item")
    return run_id or None, name


def find_item(log: Decklog, run_id: str, name: str) -> Item:
    """Find a work item of a run. Raise NotFound with the existing names."""
    tasks = tuple(log.tasks.find(run_id, tag=f"item:{name}", limit=_MOST_TASKS))
    if not any(task.role == LAND for task in tasks):
        landings = log.tasks.find(run_id, role=LAND, limit=_MOST_TASKS)
        names = sorted({tag.removeprefix("item:") for task in landings for tag in task.tags if tag.startswith("item:")})
        raise NotFound(
            f"run {run_id} has no work item {name!r}", hint=f"It has {', '.join(names) or 'none yet'}.", run_id=run_id, item=name
        )
    return Item(run_id, name, tasks)


# The change so far


_LONGEST_LINE = 200


@dataclass(frozen=True)
class ItemChange:
    """The change of an item between two commits. `is_live` if an agent or a person may be changing it now."""

    base: str
    tip: str
    is_live: bool = False


def find_workspace(context: RunContext, item: Item) -> tuple[Workspace, dict[str, Any]] | None:
    """Find the workspace of an item's open work on this host, with the facts of its attempt; None if there is none."""
    work = item.work
    if work is None:
        return None
    held: Any = work.inputs.get(BY_HAND)
    attempt = context.attempt(work.id, int(held["fence"]) if held else work.fence)
    facts = attempt.facts()
    return (attempt.place, facts) if facts is not None and attempt.place.is_made else None


def find_item_change(context: RunContext, item: Item) -> ItemChange | None:
    """Find the change of an item so far; None before its first change."""
    if item.is_landed:
        commit = item.landed_commit
        return ItemChange(context.repository.parents(commit)[0], commit)
    if (found := find_workspace(context, item)) is not None:
        place, facts = found
        tip = snapshot(context.repository, place, facts["start"], context.person, facts["at"])
        return ItemChange(str(facts["base"]), tip, is_live=True)
    for task in reversed(item.tasks):
        tip = str(task.inputs.get("tip") or task.inputs.get("start") or "")
        if tip and task.inputs.get("base"):
            context.refs.fetch_missing([tip, task.inputs["base"]])
            return ItemChange(str(task.inputs["base"]), tip)
    return None


def build_patch(context: RunContext, item: Item) -> str:
    """Build the patch of an item's change so far; empty if there is none."""
    change = find_item_change(context, item)
    return "" if change is None else write_patch(context, change)


def write_patch(context: RunContext, change: ItemChange) -> str:
    """Build the patch between the two commits of a change."""
    words = ("diff-tree", "-r", "-p", "--find-renames", "--no-color", change.base, change.tip)
    return context.repository.on_objects(*words).out.decode(errors="replace")


def quote_line(repository: Repository, commit: str, path: str, line: int) -> str:
    """Return the text of a line to quote in a comment. Raise an error if the commit has no such file or line."""
    content = repository.read(commit, path) if commit else None
    if content is None:
        raise NotFound(f"there is no file {path!r} in this change", hint="See: decklog run diff ITEM --stat", path=path)
    lines = content.decode(errors="replace").split("\n")
    if not 1 <= line <= len(lines):
        raise Invalid(f"{path} has {len(lines)} lines", hint="See: decklog run diff ITEM", field="line")
    return lines[line - 1].strip()[:_LONGEST_LINE]


# Messages of people, and the rounds that they begin


COMMENT, MESSAGE = "conductor.comment", "conductor.message"
# Messages of the conductor itself only inform people.
_OWN = "conductor"
_PAGE = 200


class Rounds:
    """Records messages of people to the work items of one run, and begins the rounds that they request."""

    def __init__(self, context: RunContext) -> None:
        self._log = context.log
        self._run_id = context.run_id
        self._stages = context.stages

    # Messages

    def post(self, item: Item, text: str, *, by: str, where: tuple[str, int] | None = None, quoted: str = "") -> Message:
        """Record a message of a person to an item, and resume the item if it has landed or waits for a person.

        `where` is the path and line that a comment is about, and `quoted` that line.
        """
        if not text.strip():
            raise Invalid("the message is empty", hint='Write what to change: "Use a set here"', field="text")
        if item.landing.state == "abandoned":
            raise Conflict(f"{item.name} was given up", hint="Start another run for this work.", item=item.name)
        place = "" if where is None else f"{where[0]}:{where[1]}: "
        body = f"{place}{text}" + (f"\n> {quoted}" if quoted else "")
        with self._log.transaction():
            # The entry comes first: it locks the run's stream, so that the item can't land in between.
            kind = MESSAGE if where is None else COMMENT
            self._log.journal.append(
                self._run_id, f"{by} on {item.name}: {body}", kind="event", subtype=kind, agent=by, task_id=item.landing.id
            )
            message = self._log.inbox.post(
                by,
                body,
                run_id=self._run_id,
                task_id=item.landing.id,
                context_url=None if where is None else f"{where[0]}#L{where[1]}",
            )
            self.resume_item(item)
        return message

    def _read(self, task: Task, state: MessageStateLike) -> list[Message]:
        """List the messages to a task's item, oldest first. With a registered owner, only authorised ones count."""
        messages = find_all(self._log.inbox.find, self._run_id, state=state)
        found = [one for one in messages if one.task_id is not None and one.from_handle != _OWN]
        if not found:
            return []
        landings = {one.id for one in self._stages.landings_of(task)}
        is_bound = bool(self._log.trust.show()["is_bound"])
        return [one for one in reversed(found) if one.task_id in landings and (one.is_authorised or not is_bound)]

    def find_pending(self, task: Task) -> list[Message]:
        """List the messages to a task's item that were not delivered to an agent yet."""
        return self._read(task, "pending")

    def find_unanswered(self, task: Task) -> list[Message]:
        """List the messages to a task's item that are not answered yet, oldest first."""
        return sorted([*self._read(task, "seen"), *self.find_pending(task)], key=lambda one: (one.received_at, one.id))

    def mark_delivered(self, message_id: str, agent: str) -> None:
        """Record that a message was delivered to an agent."""
        self._log.inbox.mark_seen(message_id, by=agent)

    def answer(self, task: Task, text: str, agent: str) -> bool:
        """Answer the messages that began this round with the agent's text; return whether there are any.

        A round after failed checks needs a change instead.
        """
        is_asked_for = int(str(task.inputs["round"])) > 1 and not task.inputs.get("findings")
        found = self._read(task, "seen") if is_asked_for and text.strip() else []
        for one in found:
            self._log.inbox.answer(one.id, text, by=agent)
        return bool(found)

    # The rounds

    def begin_if_requested(self, claim: Claim) -> bool:
        """Begin another round instead of a check or a landing if a message is pending; return whether it was begun."""
        if not self.find_pending(claim.task):
            return False
        self.begin_round(claim)
        return True

    def begin_round(self, claim: Claim) -> Task:
        """Begin another round, based on the tip of a check or a landing."""
        task = claim.task
        with self._log.transaction():
            if task.role == CHECK:
                claim.finish("another round is required")
            else:
                claim.release("another round is required")
            given = {"base": task.inputs["base"], "start": task.inputs["tip"]}
            again = self._add_round(self._stages.landing_of(task), task.inputs, given)
            kill_points.reached("rounds:begun")
        return again

    def _add_round(self, landing: Task, inputs: dict[str, Any], given: dict[str, object]) -> Task:
        number = int(str(inputs["round"])) + 1
        # A round that a person requests does not count towards the agents' rounds.
        more = {"more_rounds": int(str(inputs.get("more_rounds", 0))) + 1}
        again = {**escalation.level_inputs(inputs), **more, "item": inputs["item"], "round": number, **given}
        work = self._stages.add_task(landing, WORK, number, again, landing.title.removeprefix("Land: "))
        self._log.tasks.depend(landing.id, work.id)
        return work

    def record_landing(self, task: Task, commit: str) -> None:
        """Answer the delivered messages of a landed item. Pending ones begin another round."""
        for one in self._read(task, "seen"):
            self._log.inbox.answer(one.id, f"landed as {commit[:12]}", by="conductor")
        if self.find_pending(task):
            self._begin_landed_round(task)

    def _begin_landed_round(self, task: Task) -> None:
        """Begin another round of a landed item, based on the target when the round starts."""
        tag = item_tag(task)
        rounds = [int(str(one.inputs["round"])) for one in self._log.tasks.find(self._run_id, role=WORK, tag=tag, limit=_PAGE)]
        inputs: dict[str, Any] = {**task.inputs, "item": item_name(task), "round": max(rounds)}
        landing = self._stages.add_task(task, LAND, max(rounds) + 1, {"item": inputs["item"]}, task.title)
        self._add_round(landing, inputs, {})

    def resume_item(self, item: Item) -> None:
        """Resume an item that has landed or waits for a person. Other items read their messages by themselves."""
        with self._log.transaction():
            if self._log.tasks.get(item.landing.id).state == "done":
                if self._log.runs.get(self._run_id).ended_at is not None:
                    self._log.runs.update(self._run_id, status="active")
                self._begin_landed_round(item.landing)
            for task in item.open_tasks:
                if task.state.value in ("waiting", "blocked"):
                    self._stages.resume_for(task, "resumed by a person")


def list_messages(log: Decklog, item: Item) -> list[Message]:
    """List the newest messages of people to an item in any state, oldest first."""
    landings = {task.id for task in item.tasks if task.role == LAND}
    return [
        one for one in reversed(log.inbox.find(item.run_id, limit=_PAGE)) if one.task_id in landings and one.from_handle != _OWN
    ]
