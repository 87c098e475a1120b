"""A check as it is defined by the commit that a run started from."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from decklog.core.errors import Invalid
from decklog.records.values import to_json

REPORTS = ("junit", "none")


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check: a command whose exit code, and whose report if it writes one, say whether a tree is good."""

    name: str
    command: tuple[str, ...]
    report: str = "none"
    gate: bool = True
    minutes: float = 10.0
    network: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Name the definition by its content."""
        return hashlib.sha256(to_json(asdict(self)).encode()).hexdigest()

    def arguments(self, *, report: str, changed: Sequence[str]) -> list[str]:
        """Fill in the command; `{changed}` becomes one argument for each path."""
        words: list[str] = []
        for word in self.command:
            words += list(changed) if word == "{changed}" else [word.replace("{report}", report)]
        return words


def define(table: Mapping[str, Any]) -> Check:
    """Read a check; refuse what it lacks and what there is not."""
    name = table.get("name")
    if not isinstance(name, str) or not name.strip():
        raise Invalid("a check needs a name", hint='[[checks]] name = "tests"', field="name")
    known = {one.name for one in fields(Check)}
    for key in table:
        if key not in known:
            raise Invalid(f"check {name}: there is no setting {key!r}", hint=f"There are {', '.join(sorted(known))}.", field=key)
    command = table.get("command")
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        raise Invalid(f"check {name} needs a command, as a list of texts", hint='command = ["pytest", "-q"]', field="command")
    if table.get("report", "none") not in REPORTS:
        raise Invalid(f"check {name}: report is {table['report']!r}", hint=f"Use one of {', '.join(REPORTS)}.", field="report")
    if table.get("report") == "junit" and not any("{report}" in word for word in command):
        raise Invalid(f"check {name} has a report and does not say where", hint='"--junitxml={report}"', field="command")
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return Check(**given)
