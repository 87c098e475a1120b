"""Fields of a new or changed record: defaults, and the checks before they are written."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, NamedTuple

from decklog.core.clock import from_text
from decklog.core.errors import Invalid, TooLarge
from decklog.records.record import Record, default_of
from decklog.records.values import Values

# Lists and pages show these fields in full. A long text belongs in a body, an objective or an artifact.
LONGEST = {"title": 2_000, "question": 10_000, "subject": 2_000, "name": 1_000, "agent": 500, "role": 500, "goal": 100_000}


class RecordFacts(NamedTuple):
    """What is computed once for a record class."""

    insert: str
    defaults: dict[str, Any]
    bound_defaults: dict[str, Any]
    # Fields of limited length with their limits, and fields that hold times.
    limits: list[tuple[str, int]]
    times: list[str]


@cache
def _facts_of(record_class: Any) -> RecordFacts:
    names, values = record_class.columns(), Values()
    defaults = {field.name: default_of(field) for field in fields(record_class)}
    return RecordFacts(
        f"insert into {record_class.table} ({', '.join(names)}) values ({', '.join(':' + name for name in names)})",
        defaults,
        {name: value if value is MISSING else values.bind_value(name, value)[0] for name, value in defaults.items()},
        [(name, most) for name, most in LONGEST.items() if name in names],
        [name for name in names if record_class.holds_time(name)],
    )


def facts_of(record_class: type[Record]) -> RecordFacts:
    """Return what is computed once for a record class."""
    return _facts_of(record_class)  # type: ignore[arg-type]


def with_defaults(record_class: type[Record], given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with the record's defaults, in the order of its columns."""
    return _fill_defaults(record_class, facts_of(record_class).defaults, given)


def bind_with_defaults(values: Values, record_class: type[Record], given: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the completed fields bound for their columns, and whether anything was redacted."""
    check_fields(record_class, given)
    bound = _fill_defaults(record_class, facts_of(record_class).bound_defaults, given)
    return bound, values.bind_into(bound, given)


def check_fields(record_class: type[Record], given: Mapping[str, Any]) -> None:
    """Check the lengths of names, titles and questions, and the types of times, before a record is written."""
    facts = facts_of(record_class)
    for name, most in facts.limits:
        value = given.get(name)
        if type(value) is str and len(value) > most:
            raise TooLarge(
                f"the {name} of the {record_class.noun()} has {len(value):,} characters, and at most {most:,} are kept",
                hint="Shorten it, and keep the whole text elsewhere, as in an artifact.",
                field=name,
            )
    for name in facts.times:
        if type(value := given.get(name)) is str:
            try:
                from_text(value)
            except ValueError:
                raise Invalid(f"{name} is a time such as 2026-11-15T08:30:00Z; got {value[:80]!r}", field=name) from None


def _fill_defaults(record_class: type[Record], known: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    complete = {**known, **given}
    if len(complete) > len(known):
        raise TypeError(f"{record_class.__name__} has no {', '.join(given.keys() - known.keys())}")
    if MISSING in complete.values():
        missing = [name for name, value in complete.items() if value is MISSING]
        raise TypeError(f"{record_class.__name__} needs {', '.join(missing)}")
    return complete


def check_identity(record_class: type[Record], given: Mapping[str, Any], bound: Mapping[str, Any]) -> None:
    """Refuse a record whose id contains a secret: redacted ids could collide."""
    for name in record_class.identity:
        # Keys are compared unchanged.
        if name != "key" and isinstance(given.get(name), str) and bound[name] != given[name]:
            raise Invalid(
                f"the {name} of a {record_class.noun()} looks like a secret, and would become {bound[name]}",
                hint="Know it by something that everybody may see.",
                field=name,
            )
