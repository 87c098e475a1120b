"""A work item of a run: its tasks, its change so far, and the messages that begin another round.

A message of a person is one of the inbox to the task that lands the item. It is pending until an agent has got it, seen then,
and answered when the item lands. An item does not land over a pending message: another round begins instead.
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
from decklog.records.record import every_page
from decklog.stores.approvals.inbox import Message, MessageStateLike
from decklog.stores.tasks.claim import Claim
from decklog.stores.tasks.task import Task

_MOST_TASKS = 200
# The key of a work task's inputs that names who works on it by hand.
BY_HAND = "by_hand"


@dataclass(frozen=True)
class Item:
    """A work item: the tasks of all its rounds, in the order in which they were added."""

    run_id: str
    name: str
    tasks: tuple[Task, ...]

    @property
    def landing(self) -> Task:
        """The task that lands it, the newest if it landed before."""
        return newest_landing([task for task in self.tasks if task.role == LAND])

    @property
    def is_landed(self) -> bool:
        return self.landing.state == "done"

    @property
    def landed_commit(self) -> str:
        """The last commit with a change of it that has landed; a round in which only a question was answered has none."""
        results: list[Any] = [task.result for task in self.tasks if task.role == LAND and task.state == "done"]
        return str(next((one for one in reversed(results) if one.get("files")), results[-1])["commit"])

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens to it: it has landed, or was given up."""
        return self.landing.state.value in ("done", "abandoned")

    @property
    def open_tasks(self) -> list[Task]:
        """The tasks that are neither done nor given up."""
        return [task for task in self.tasks if task.state.value not in ("done", "abandoned")]

    @property
    def work(self) -> Task | None:
        """The task in which it is worked on now, or will be next; None between rounds."""
        return next((task for task in reversed(self.open_tasks) if task.role == WORK), None)


def split_name(text: str) -> tuple[str | None, str]:
    """Split ITEM or RUN.ITEM into the run, None if it is not named, and the item."""
    run_id, _, name = text.rpartition(".")
    if not name:
        raise Invalid(f"{text!r} names no work item", hint="Write ITEM, or RUN.ITEM.", field="item")
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


def workspace_of(context: RunContext, item: Item) -> tuple[Workspace, dict[str, Any]] | None:
    """Find the workspace on this host in which an item is worked on, with the facts of its attempt; None if there is none."""
    work = item.work
    if work is None:
        return None
    held: Any = work.inputs.get(BY_HAND)
    attempt = context.attempt(work.id, int(held["fence"]) if held else work.fence)
    facts = attempt.facts()
    return (attempt.place, facts) if facts is not None and attempt.place.is_made else None


def change_of(context: RunContext, item: Item) -> ItemChange | None:
    """Find what an item changes so far; None before its first change."""
    if item.is_landed:
        commit = item.landed_commit
        return ItemChange(context.repository.parents(commit)[0], commit)
    if (found := workspace_of(context, item)) is not None:
        place, facts = found
        tip = snapshot(context.repository, place, facts["start"], context.person, facts["at"])
        return ItemChange(str(facts["base"]), tip, is_live=True)
    for task in reversed(item.tasks):
        tip = str(task.inputs.get("tip") or task.inputs.get("start") or "")
        if tip and task.inputs.get("base"):
            context.tips.fetch_missing([tip, task.inputs["base"]])
            return ItemChange(str(task.inputs["base"]), tip)
    return None


def patch_of(context: RunContext, item: Item) -> str:
    """Write the change of an item so far as a patch; empty if there is none."""
    change = change_of(context, item)
    return "" if change is None else write_patch(context, change)


def write_patch(context: RunContext, change: ItemChange) -> str:
    """Write what differs between two commits as a patch."""
    words = ("diff-tree", "-r", "-p", "--find-renames", "--no-color", change.base, change.tip)
    return context.repository.on_objects(*words).out.decode(errors="replace")


def located(repository: Repository, commit: str, path: str, line: int) -> str:
    """Return the line that a comment is about. Raise NotFound for a file or a line that the change does not have."""
    content = repository.read(commit, path) if commit else None
    if content is None:
        raise NotFound(f"the change has no file {path!r}", hint="See: decklog run diff ITEM --stat", path=path)
    lines = content.decode(errors="replace").split("\n")
    if not 1 <= line <= len(lines):
        raise Invalid(f"{path} has {len(lines)} lines", hint="See: decklog run diff ITEM", field="line")
    return lines[line - 1].strip()[:_LONGEST_LINE]


# Messages of people, and the rounds that they begin


COMMENT, MESSAGE = "conductor.comment", "conductor.message"
# Messages of the conductor itself inform people; they ask for nothing.
_OWN = "conductor"
_PAGE = 200


class Rounds:
    """Records messages of people to the work items of one run, and begins the rounds that they ask for."""

    def __init__(self, context: RunContext) -> None:
        self._log = context.log
        self._run_id = context.run_id
        self._stages = context.stages

    # Messages

    def post(self, item: Item, text: str, *, by: str, where: tuple[str, int] | None = None, quoted: str = "") -> Message:
        """Record a message of a person to an item, and resume the item if it was at rest.

        `where` is the path and line that a comment is about, and `quoted` that line.
        """
        if not text.strip():
            raise Invalid("it has no text", hint='Write what is to be changed: "Use a set here"', field="text")
        if item.landing.state == "abandoned":
            raise Conflict(f"{item.name} was given up", hint="Start a run for what is to be done.", item=item.name)
        place = "" if where is None else f"{where[0]}:{where[1]}: "
        body = f"{place}{text}" + (f"\n> {quoted}" if quoted else "")
        with self._log.transaction():
            # First: the entry locks the run's stream, so that nobody lands the item in between.
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
            self.wake(item)
        return message

    def _read(self, task: Task, state: MessageStateLike) -> list[Message]:
        """List the messages to the item of a task, oldest first. With a registered owner only recognised people count."""
        messages = every_page(self._log.inbox.find, self._run_id, state=state)
        found = [one for one in messages if one.task_id is not None and one.from_handle != _OWN]
        if not found:
            return []
        landings = {one.id for one in self._stages.landings_of(task)}
        is_bound = bool(self._log.trust.show()["is_bound"])
        return [one for one in reversed(found) if one.task_id in landings and (one.is_authorised or not is_bound)]

    def pending(self, task: Task) -> list[Message]:
        """List the messages to the item of a task that no agent has got yet."""
        return self._read(task, "pending")

    def unanswered(self, task: Task) -> list[Message]:
        """List the messages to the item of a task since it landed last."""
        return sorted([*self._read(task, "seen"), *self.pending(task)], key=lambda one: (one.received_at, one.id))

    def delivered(self, message_id: str, agent: str) -> None:
        """Record that an agent has got a message."""
        self._log.inbox.mark_seen(message_id, by=agent)

    def answer(self, task: Task, text: str, agent: str) -> bool:
        """Answer the messages for which a round was begun with the words of its agent; return whether there are any.

        A round after red checks needs a change, not words.
        """
        is_asked_for = int(str(task.inputs["round"])) > 1 and not task.inputs.get("findings")
        found = self._read(task, "seen") if is_asked_for and text.strip() else []
        for one in found:
            self._log.inbox.answer(one.id, text, by=agent)
        return bool(found)

    # The rounds

    def has_another(self, claim: Claim) -> bool:
        """Begin another round instead of a check or a landing if somebody asked for one; return whether."""
        if not self.pending(claim.task):
            return False
        self.begin(claim)
        return True

    def begin(self, claim: Claim) -> Task:
        """Begin another round from the tip that a check or a landing has."""
        task = claim.task
        with self._log.transaction():
            if task.role == CHECK:
                claim.finish("another round is required")
            else:
                claim.release("another round is required")
            given = {"base": task.inputs["base"], "start": task.inputs["tip"]}
            again = self._add(self._stages.landing_of(task), task.inputs, given)
            kill_points.reached("rounds:begun")
        return again

    def _add(self, landing: Task, inputs: dict[str, Any], given: dict[str, object]) -> Task:
        number = int(str(inputs["round"])) + 1
        # A round that a person asks for does not count among those that agents have.
        more = {"more_rounds": int(str(inputs.get("more_rounds", 0))) + 1}
        again = {**escalation.level_inputs(inputs), **more, "item": inputs["item"], "round": number, **given}
        work = self._stages.add(landing, WORK, number, again, landing.title.removeprefix("Land: "))
        self._log.tasks.depend(landing.id, work.id)
        return work

    def landed(self, task: Task, commit: str) -> None:
        """Answer the messages that an item has landed with; later ones begin another round."""
        for one in self._read(task, "seen"):
            self._log.inbox.answer(one.id, f"landed as {commit[:12]}", by="conductor")
        if self.pending(task):
            self._begin_after_landing(task)

    def _begin_after_landing(self, task: Task) -> None:
        """Begin another round of an item that has landed, from the target as it is by then."""
        tag = item_tag(task)
        rounds = [int(str(one.inputs["round"])) for one in self._log.tasks.find(self._run_id, role=WORK, tag=tag, limit=_PAGE)]
        inputs: dict[str, Any] = {**task.inputs, "item": item_name(task), "round": max(rounds)}
        landing = self._stages.add(task, LAND, max(rounds) + 1, {"item": inputs["item"]}, task.title)
        self._add(landing, inputs, {})

    def wake(self, item: Item) -> None:
        """Resume an item that has landed, or waits for a person. Others find their messages anyway."""
        with self._log.transaction():
            if self._log.tasks.get(item.landing.id).state == "done":
                if self._log.runs.get(self._run_id).ended_at is not None:
                    self._log.runs.update(self._run_id, status="active")
                self._begin_after_landing(item.landing)
            for task in item.open_tasks:
                if task.state.value in ("waiting", "blocked"):
                    self._stages.resume_for(task, "a person goes on with it")


def messages_of(log: Decklog, item: Item) -> list[Message]:
    """List the newest of what people wrote to an item, oldest first, in any state."""
    landings = {task.id for task in item.tasks if task.role == LAND}
    return [
        one for one in reversed(log.inbox.find(item.run_id, limit=_PAGE)) if one.task_id in landings and one.from_handle != _OWN
    ]
