"""The environment a command gets: an allow-list, and never a secret."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from decklog import redaction
from decklog.core.errors import Invalid
from decklog.guard.policy import is_name

NAMES = frozenset({"PATH", "HOME", "LANG", "LANGUAGE", "TERM", "TZ", "USER", "LOGNAME", "TMPDIR", "NO_COLOR"})
# The categories of locale(7) and their override. Anything else that begins like them is somebody's own variable.
LOCALE = frozenset(
    f"LC_{name}"
    for name in (
        *("ALL", "ADDRESS", "COLLATE", "CTYPE", "IDENTIFICATION", "MEASUREMENT", "MESSAGES"),
        *("MONETARY", "NAME", "NUMERIC", "PAPER", "TELEPHONE", "TIME"),
    )
)
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class Environment:
    """What a command sees, and the names of what was asked for and withheld because it holds a secret."""

    values: dict[str, str]
    withheld: tuple[str, ...]


def environment(
    passed: Iterable[str] = (),
    given: Mapping[str, str] | None = None,
    source: Mapping[str, str] | None = None,
) -> Environment:
    """Choose the variables that a command gets: the usual ones, those the caller names, and those given outright."""
    have = os.environ if source is None else source
    wanted = NAMES | LOCALE | set(passed)
    chosen = {name: have[name] for name in have if name in wanted}
    withheld = sorted(name for name, value in chosen.items() if is_secret(name, value))
    values = {name: value for name, value in chosen.items() if name not in withheld}
    values.setdefault("PATH", _FALLBACK_PATH)
    for name, value in (given or {}).items():
        _check(name, value)
        values[name] = value
    return Environment(values, tuple(withheld))


# The same few variables are looked at for every command.
@lru_cache(maxsize=256)
def is_secret(name: str, value: str) -> bool:
    """Return whether a variable holds something that the redaction would take out of a text."""
    return redaction.scan(f"{name}={value}")[1] or redaction.scan(value)[1]


def _check(name: str, value: str) -> None:
    if not is_name(name) or "\0" in value:
        hint = "Use a name of letters, digits and underscores, and a value without NUL."
        raise Invalid(f"{name!r} can't be set in an environment", hint=hint, name=name)
    if name.startswith("DECKLOG_"):
        raise Invalid(f"{name} is Decklog's own", hint="Choose another name.", name=name)
