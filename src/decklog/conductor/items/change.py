"""The change of a work item so far: the workspace that it is made in, its commits, and its patch."""

from dataclasses import dataclass
from typing import Any

from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.conductor.git.workspaces import Workspace, snapshot
from decklog.conductor.items.item import BY_HAND, Item
from decklog.core.errors import Invalid, NotFound

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
