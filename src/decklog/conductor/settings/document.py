"""`decklog.toml` as a document: parsed once, with the shape of its sections checked."""

import tomllib
from typing import Any

from decklog.core.errors import Invalid

NAME = "decklog.toml"
# Sections whose members are tables with names of their own.
_NAMED = ("agents", "models")
_CHECKS_HINT = 'Start each check with [[checks]] and give it a name, such as name = "tests".'


def load(content: bytes) -> dict[str, Any]:
    """Parse settings. Raise Invalid for text that is not TOML and for sections of the wrong shape."""
    try:
        table = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise Invalid(f"{NAME} is not TOML: {problem}", hint="Mend it and commit it.") from problem
    for name, section in table.items():
        if name == "checks":
            _check_list(section)
        elif not isinstance(section, dict):
            raise Invalid(f"{name} in {NAME} is a table", hint=f"Write it as [{name}].", field=name)
    for section_name in _NAMED:
        for name, member in table.get(section_name, {}).items():
            if not isinstance(member, dict):
                raise Invalid(
                    f"{section_name}.{name} in {NAME} is a table", hint=f"Write it as [{section_name}.{name}].", field=name
                )
    return table


def _check_list(checks: object) -> None:
    if isinstance(checks, dict):
        written = ", ".join(f"[checks.{name}]" for name in checks) or "[checks]"
        raise Invalid(f"{NAME} has {written}, but checks is a list", hint=_CHECKS_HINT, field="checks")
    if not isinstance(checks, list) or not all(isinstance(one, dict) for one in checks):
        raise Invalid(f"checks in {NAME} is a list of tables", hint=_CHECKS_HINT, field="checks")
