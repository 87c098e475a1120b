"""Judging of environment variables that a command sets."""

import re
from itertools import pairwise

from decklog.guard.policy.programs.use import Judge
from decklog.guard.policy.shell.scope import Scope
from decklog.guard.policy.shell.simple_command import Call
from decklog.guard.policy.shell.words import UNKNOWN, Word

# A variable of this kind stands for an option of its program.
_OPTION = re.compile(r"(?i)^(?:npm_config|pnpm_config|yarn|pip|uv|cargo|bundle|poetry)_+")
_OPTIONS_OF = "options of "
_ROLES = {"load", "place", "write", "settings", "program"}
# One of these stands in every command that changes data by a pattern of the policy.
_CHANGES = (
    "migrat", "upgrade", "downgrade", "rollback", "seed", "reset", "flush", "load", "truncate", "backfill", "push", "update",
    "drop", "purge",
)  # fmt: skip
_SAFE_PATH_CLASSES = {"inside", "top", "home-part", "home-deep", "startup", "system", "parent"}


def check_variable(judge: Judge, name: str, word: Word, call: Call, scope: Scope) -> None:
    """Judge setting one variable."""
    if name == "PATH":
        _check_path(judge, word, call, scope)
        return
    known = judge.policy.variables.get(name)
    if known is None:
        # A name that the script alone sees decides nothing; one that a program sees may.
        option = _OPTION.sub("", name)
        role = judge.policy.role_by_name(option) if call.argv else "text"
        if (role in _ROLES or (role == "value" and option != name)) and word.is_known:
            judge.role(role, word, call, scope)
    elif isinstance(known, str) and known.startswith(_OPTIONS_OF):
        program = Word(known.removeprefix(_OPTIONS_OF))
        judge.review(call.inner([program, *(Word(part, word.taint) for part in word.text.split())]), scope)
    elif isinstance(known, str):
        if word.text.strip():
            judge.role(known, word, call, scope)
    else:
        judge.find(known, call.text)


def _check_path(judge: Judge, word: Word, call: Call, scope: Scope) -> None:
    """Judge a search path: known places may come before the old one, others are asked about."""
    parts = [part for part in word.text.split(":") if part]
    keeps_old = UNKNOWN in parts or any(part.startswith("/usr/bin") for part in parts)
    odd = [
        part
        for part in parts
        if part != UNKNOWN and (part == "." or judge.paths.classify(part, scope.cwd) not in _SAFE_PATH_CLASSES)
    ]
    if not keeps_old or odd:
        judge.report("path-override", call.text)


def may_change_data(text: str) -> bool:
    """Tell whether a change of data could be in a text, without the cost of a closer look."""
    return any(part in text for part in _CHANGES)


def check_production(judge: Judge, call: Call, scope: Scope) -> None:
    """Ask about a change of data where a variable or an option before it names production."""
    words = [word.text for word in call.argv[1:]]
    patterns = judge.policy.patterns
    if any(map(patterns["data_look"].search, words)) or not any(map(patterns["data_change"].search, words)):
        return
    given = [f"{name}={values[-1].text}" for name, values in scope.variables.items()]
    given += [f"{name}={word.text}" for name, word in call.assigned.items()]
    given += [word.lstrip("-") for word in words if "=" in word]
    given += [f"{option.lstrip('-')}={value}" for option, value in pairwise(words) if option.startswith("-")]
    given += [call.text]
    if any(map(patterns["production"].search, given)):
        judge.report("production-data", call.text)
