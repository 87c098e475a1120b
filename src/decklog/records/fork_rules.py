"""What a fork of a run does with each type of record: copy it, copy it with other values, or leave it out.

Every record of a run has a `ForkRule`; `docs/explanation/forks.md` shows them all.
"""

from collections.abc import Callable, Mapping
from typing import Any

from decklog.records.values import from_json, to_json

Image = dict[str, Any]


class Fork:
    """The fork that records are copied into."""

    def __init__(self, run_id: str, parent_run_id: str, now: str) -> None:
        self.run_id = run_id
        self.now = now
        # Number of entries of the copies, set after the records are selected.
        self.entries = 0
        # The ids of the copies, by table and by the id of the original.
        self.ids: dict[tuple[str, str], str] = {("runs", parent_run_id): run_id}


class FieldRule:
    """How a fork sets one field: `words` for the documentation, and a function of the original value and the fork."""

    def __init__(self, words: str, apply: Callable[[Any, Fork], Any] | None = None) -> None:
        self.words = words
        self._apply = apply

    def apply(self, value: Any, fork: Fork) -> Any:
        """Return the value of the copy."""
        return value if self._apply is None else self._apply(value, fork)


class Reset(FieldRule):
    """The field gets a fixed value. None removes it where it is part of a JSON object."""

    def __init__(self, value: str | int | None = None) -> None:
        super().__init__("empty" if value is None else f"`{value}`", lambda _value, _fork: value)
        self.value = value


class Replace(FieldRule):
    """Some values are replaced by others; the rest is copied."""

    def __init__(self, values: Mapping[str, str]) -> None:
        words = ", ".join(f"`{old}` becomes `{new}`" for old, new in values.items())
        super().__init__(words, lambda value, _fork: values.get(value, value))
        self.values = values


class Refer(FieldRule):
    """The field has the id of a record of the run, or a list of ids. The copy is_reference to the copies of these records."""

    def __init__(self, table: str) -> None:
        super().__init__(f"the copy in `{table}`", self._copies)
        self.table = table

    def _copies(self, value: Any, fork: Fork) -> Any:
        if isinstance(value, list):
            return [self._copies(item, fork) for item in value]
        return fork.ids.get((self.table, value), value)


class Computed(FieldRule):
    """The record class sets the field in `compute_forked_fields` or `repair_fork`."""


FORK_TIME = FieldRule("the time of the fork", lambda _, fork: fork.now)
FORK_RUN = FieldRule("the id of the fork", lambda _, fork: fork.run_id)
LAST_ENTRY = FieldRule("the fork's entry after which all copies are there", lambda _, fork: fork.entries)


class ForkRule:
    """What a fork does with the records of one type.

    `fields` names the fields that are not copied as they are; a path such as `task.depends_on` leads into a JSON column. The
    record's own id and its run are always those of the copy. `same_ids` names the other columns with ids, which mean the same in
    the fork. `left_out` describes the records that are not copied; `is_left_out` finds them.
    """

    def __init__(
        self,
        why: str,
        *,
        is_copied: bool = True,
        fields: Mapping[str, FieldRule] | None = None,
        same_ids: tuple[str, ...] = (),
        left_out: str = "",
        is_left_out: Callable[[Image, Fork], bool] | None = None,
    ) -> None:
        self.why = why
        self.is_copied = is_copied
        self.fields = dict(fields or {})
        self.same_ids = same_ids
        self.left_out = left_out
        self._is_left_out = is_left_out

    def copies(self, image: Image, fork: Fork) -> bool:
        """Return whether the fork copies this record."""
        return self.is_copied and not (self._is_left_out is not None and self._is_left_out(image, fork))

    def is_reference(self, name: str) -> bool:
        """Return whether a column has ids of records of the run."""
        return isinstance(self.fields.get(name), Refer)

    def copy(self, image: Image, fork: Fork, holds_json: Callable[[str], bool]) -> Image:
        """Return the columns of the copy."""
        copy = dict(image)
        for path, rule in self.fields.items():
            name, *parts = path.split(".")
            if not holds_json(name):
                if copy[name] is not None or not isinstance(rule, (Refer, Replace)):
                    copy[name] = rule.apply(copy[name], fork)
            elif copy[name] is not None:
                copy[name] = to_json(_apply_at_path(from_json(copy[name]), parts, rule, fork))
        return copy


def not_copied(why: str) -> ForkRule:
    """Return the rule for records that no fork copies."""
    return ForkRule(why, is_copied=False)


def _apply_at_path(value: Any, parts: list[str], rule: FieldRule, fork: Fork) -> Any:
    """Apply a rule to the part of a JSON value at a path. A path that does not exist changes nothing."""
    if not parts:
        return rule.apply(value, fork)
    first, *rest = parts
    if not isinstance(value, dict) or value.get(first) is None:
        return value
    inner = _apply_at_path(value[first], rest, rule, fork)
    others = {name: part for name, part in value.items() if name != first}
    return others if inner is None else {**others, first: inner}
