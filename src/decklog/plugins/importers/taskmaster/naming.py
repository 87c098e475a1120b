"""What Task Master's tasks are called: a task by its tag and number, a part by its whole's number before its own."""

from typing import TYPE_CHECKING

from decklog.plugins.importers.taskmaster.words import MAIN, OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any

_LONGEST = 16


def number_of(task: "Any", above: str = "") -> str:
    """Return a task's number, which may be any text; a part's may have its whole's before it. Nothing where it has none."""
    name = str(task.get("id") or "").strip() if isinstance(task, dict) else ""
    return name and (f"{above}.{name.removeprefix(f'{above}.')}" if above else name)


def siblings_of(parts: "Iterable[Any]", above: str) -> set[str]:
    """Return the numbers that the parts of a task have within it."""
    return {number.removeprefix(f"{above}.") for part in parts if (number := number_of(part, above))}


def needed_number(word: object, above: str, siblings: "Collection[str]") -> str:
    """Return the number of what a task waits for: in a part, one that a sibling has means that."""
    other = str(word).strip()
    return f"{above}.{other}" if above and other in siblings else other


def spelled_id(number: str) -> "int | str":
    """Spell a number as an id: one that is none, or is spelled otherwise, stays a text."""
    is_number = number.isascii() and number.isdecimal() and len(number) < _LONGEST
    return int(number) if is_number and str(int(number)) == number else number


def ours_of(task: "dict[str, Any]") -> str | None:
    """Return what a task says that it is called here."""
    facts = task.get("metadata")
    ours = facts.get(OURS) if isinstance(facts, dict) else None
    return ours if isinstance(ours, str) and ours.strip() else None


class NameClaims:
    """Which tasks of a document are those that were made here, by what they say that they are called here.

    `run_of` names the run of a tag, `run_here` that of a task that is here, and `has` says whether the document has a number.
    """

    def __init__(
        self, run_of: "Callable[[str], str]", run_here: "Callable[[str], str | None]", has: "Callable[[str, str], bool]"
    ) -> None:
        self._run_of = run_of
        self._run_here = run_here
        self._has = has

    def settled(self, told: "Iterable[tuple[str, str, str]]") -> "dict[tuple[str, str], str]":
        """Return the names of those that are called so; each is told by tag, number and name.

        Who copies a task, or a tag, copies that too: one of them is the task, and the others are known by their numbers.
        """
        named: dict[tuple[str, str], str] = {}
        taken = set[str]()
        for tag, number, ours in sorted(told, key=lambda one: (self._is_known_by_number(*one[:2]), one[0] != MAIN, one)):
            if ours not in taken and self._can_be(tag, ours):
                named[tag, number] = ours
                taken.add(ours)
        return named

    def _is_known_by_number(self, tag: str, number: str) -> bool:
        return self._run_here(f"{self._run_of(tag)}-{number}") is not None

    def _can_be(self, tag: str, ours: str) -> bool:
        run_id = self._run_of(tag)
        run_here = self._run_here(ours)
        if not ours.startswith(f"{run_id}-"):
            return run_here in (None, run_id)
        # So are those called that have a number.
        return run_here == run_id and not self._has(tag, ours.removeprefix(f"{run_id}-"))
