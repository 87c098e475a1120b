"""Task Master's document as a sync reads and changes it: its tasks and subtasks by name, each in its place."""

from typing import TYPE_CHECKING

from decklog.importing.tracker import moment_of
from decklog.plugins.importers.taskmaster.importer import TASKS
from decklog.plugins.importers.taskmaster.naming import NameClaims, needed_number, number_of, ours_of, siblings_of, spelled_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from decklog.importing.syncing import Items

    Place = tuple[str, str]

NEEDS = "dependencies"
PLACE = "its place"
_PARTS = "subtasks"
_USUAL = {"status": "pending", "priority": "medium"}


class Document:
    """The tags of a document. `run_of` names the run of a tag, `run_here` that of a task that is here."""

    def __init__(self, tags: "dict[str, Any]", run_of: "Callable[[str], str]", run_here: "Callable[[str], str | None]") -> None:
        self.tags = tags
        self._tasks: dict[Place, dict[str, Any]] = {}
        # Of a part: the number of its whole, and those that its siblings have within that.
        self._wholes: dict[Place, tuple[str, set[str]]] = {}
        # Those whose number another has.
        self._doubles: list[dict[str, Any]] = []
        for tag, held in tags.items():
            for task in _listed(held, TASKS):
                self._place(tag, task)
        told = [(*place, ours) for place, task in self._tasks.items() if (ours := ours_of(task)) is not None]
        self._names = NameClaims(run_of, run_here, lambda *place: place in self._tasks).settled(told)
        self.places = {self._names.get(place) or "/".join(place): place for place in self._tasks}

    def _place(self, tag: str, task: "dict[str, Any]") -> None:
        """Remember where a task stands, and its parts."""
        number = number_of(task)
        if not self._is_taken((tag, number), task):
            return
        parts = _listed(task, _PARTS)
        siblings = siblings_of(parts, number)
        for part in parts:
            place = (tag, number_of(part, number))
            if self._is_taken(place, part):
                self._wholes[place] = (number, siblings)

    def _is_taken(self, place: "Place", task: "dict[str, Any]") -> bool:
        """Take the newer of two with the same number, or the first."""
        held = self._tasks.get(place)
        if held is not None:
            is_older = moment_of(held.get("updatedAt")) >= moment_of(task.get("updatedAt"))
            self._doubles.append(task if is_older else held)
            if is_older:
                return False
        self._tasks[place] = task
        return True

    def drop_doubles(self) -> None:
        """Take off those whose number another has, so that an import takes just that."""
        doubles = {id(task) for task in self._doubles}
        if doubles:
            for held in [*self.tags.values(), *self._tasks.values()]:
                for name in (TASKS, _PARTS):
                    if isinstance(held, dict) and isinstance(listed := held.get(name), list):
                        held[name] = [one for one in listed if id(one) not in doubles]

    def items(self) -> "Items":
        """Give tasks and subtasks by name, with what they wait for by name too."""
        return {name: self._item(place) for name, place in self.places.items()}

    def _item(self, place: "Place") -> "dict[str, Any]":
        tag, _ = place
        task = self._tasks[place]
        above, siblings = self._wholes.get(place, ("", set[str]()))
        needs = task.get(NEEDS)
        own = {name: value for name, value in task.items() if name not in (_PARTS, NEEDS) and value is not None}
        if own.get("description") == own.get("title"):
            # It reads no task without one, and so has the title there.
            own.pop("description", None)
        if isinstance(needs, list):
            own[NEEDS] = [self._named(tag, needed_number(word, above, siblings)) for word in needs]
        elif needs:
            own[NEEDS] = needs
        return {"title": "/".join(place), **_USUAL, **own, PLACE: place}

    def _named(self, tag: str, number: str) -> str:
        return self._names.get((tag, number)) or f"{tag}/{number}"

    def add(self, name: str, item: "dict[str, Any]") -> None:
        """Make room for a task that was made here: with the next number of its tag, or of its whole."""
        tag, number = item[PLACE]
        above, is_part, _ = number.partition(".")
        whole = self._tasks.get((tag, above)) if is_part else None
        beside = self.tags.setdefault(tag, {TASKS: [], "metadata": {}}) if whole is None else whole
        part_of = "" if whole is None else above
        listed = _list_in(beside, TASKS if whole is None else _PARTS)
        numbers = (spelled_id(one.removeprefix(f"{part_of}.")) for one in (number_of(task, part_of) for task in listed))
        own = max((found for found in numbers if isinstance(found, int)), default=0) + 1
        task = {"id": own}
        listed.append(task)
        place = (tag, number_of(task, part_of))
        self._tasks[place], self.places[name] = task, place
        if part_of:
            self._wholes[place] = (part_of, siblings_of(listed, part_of))

    def replace(self, name: str, item: "dict[str, Any]") -> None:
        """Write an item in its place; what it waits for is spelled anew only where that differs."""
        place = self.places[name]
        task = self._tasks[place]
        needs = item.get(NEEDS) or []
        spelled = task.get(NEEDS)
        if isinstance(needs, list) and set(self._item(place).get(NEEDS) or ()) != set(needs):
            spelled = [*filter(None, (self._spelled(other, place) for other in needs))]
        kept = {name: value for name, value in task.items() if name in ("id", _PARTS)}
        told = {name: value for name, value in item.items() if name not in (PLACE, "id", NEEDS, _PARTS)}
        if described := told.get("description") or told.get("title"):
            told["description"] = described
        task.clear()
        task.update({**kept, **told, NEEDS: [] if spelled is None else spelled})

    def _spelled(self, name: str, place: "Place") -> "int | str | None":
        """Spell what a task waits for: a sibling by its number, another task by its, any other subtask by both."""
        other = self.places.get(name)
        above, siblings = self._wholes.get(place, ("", set[str]()))
        if other is None:
            return None
        whole, _ = self._wholes.get(other, ("", ()))
        if above and whole == above:
            return spelled_id(other[1].removeprefix(f"{above}."))
        # By its number alone it would be read as a sibling.
        return None if other[1] in siblings else spelled_id(other[1])


def _listed(held: object, name: str) -> "list[dict[str, Any]]":
    found = held.get(name) if isinstance(held, dict) else None
    return [one for one in found if number_of(one)] if isinstance(found, list) else []


def _list_in(held: "dict[str, Any]", name: str) -> "list[Any]":
    """Return a list to add to; where there is none, one is made."""
    if not isinstance(held.get(name), list):
        held[name] = []
    found: list[Any] = held[name]
    return found
