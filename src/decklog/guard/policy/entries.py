"""What the entries of a policy file say: findings, programs, rules."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from decklog.guard.policy.verdict import Decision

_NOTHING: Mapping[str, "Finding"] = MappingProxyType({})
_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


class Finding(NamedTuple):
    """A decision with the rule behind it, not yet tied to a command."""

    decision: Decision
    rule: str
    reason: str


class Program(NamedTuple):
    """What a program does with its arguments, and whether it may run at all."""

    finding: Finding
    options: Mapping[str, str] = _NO_OPTIONS
    """Options that take a value, with the value's role."""
    operands: str = "text"
    first: str | None = None
    last: str | None = None
    single: bool = False
    runs: str | None = None
    """How it starts another program: `argv` or `shell`."""
    skip: int = 0
    subcommands: Mapping[str, Finding] = _NOTHING
    kind: str | None = None
    """The special reading it needs: `git`, `find`, `python` ..."""
    code: frozenset[str] = frozenset()
    output: str | None = None
    interactive: frozenset[str] = frozenset()
    """Options with which an interpreter also reads commands from standard input."""
    shows: frozenset[str] = frozenset()
    """Options with which, and without operands, it only shows something; none at all is one of them where any is listed."""
    dry: frozenset[str] = frozenset()
    """Options, as written, with which it only says what it would do."""
    adds: frozenset[str] = frozenset()
    """Subcommands that add the packages they are given."""
    level: bool = False
    """Whether the entry is only a word between a program and subcommands that have entries of their own."""
    reading: re.Pattern[str] | None = None
    """The verbs with which it only reads what an account or a server has."""
    groups: frozenset[str] = frozenset()
    """The words that may stand before the verb; `*` is any one word."""
    slashes: bool = False
    """Whether it writes its options as `/name:value`."""


class Rule(NamedTuple):
    """A decision about some uses of some programs; every condition given must hold."""

    finding: Finding
    sub: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    words: re.Pattern[str] | None = None
    any: re.Pattern[str] | None = None
    """A pattern found in one of the arguments, options included."""
    bare: bool = False
    unless: re.Pattern[str] | None = None
    """A pattern; where one of the arguments has it, the rule is not about this use."""
