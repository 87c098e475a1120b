"""The entry points: may this command run, and what does it publish?"""

import re
import shlex
from collections.abc import Mapping

from decklog.core.errors import Invalid
from decklog.guard.policy.engine import Judging
from decklog.guard.policy.parse import LONGEST, TooComplex
from decklog.guard.policy.policy import Policy
from decklog.guard.policy.scope import Scope
from decklog.guard.policy.use import Call
from decklog.guard.policy.verdict import CommandVerdict, Event, Publication
from decklog.guard.policy.words import Word

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# Bash sets these when it starts.
_SET_BY_BASH = frozenset(
    ["IFS", "PWD", "OLDPWD", "UID", "EUID", "PPID", "SHLVL", "RANDOM", "SECONDS", "LINENO", "BASHPID", "HOSTNAME", "OPTIND", "_"]
)


def judge(
    command: str | list[str],
    policy: Policy | None = None,
    *,
    root: str | None = None,
    cwd: str = ".",
    env: Mapping[str, str] | None = None,
) -> CommandVerdict:
    """Judge a command before it runs: a bash command line, or a list of arguments that runs without a shell.

    `root` is the absolute path of the repository; without it, relative paths are inside it. `cwd` is relative to the root, and
    `env` holds additional variables. Nothing is executed and no file is read. Any text gets a verdict; an empty list, another
    type or an invalid variable name raises Invalid.
    """
    return examine(command, policy, root=root, cwd=cwd, env=env)[0]


def examine(
    command: str | list[str],
    policy: Policy | None = None,
    *,
    root: str | None = None,
    cwd: str = ".",
    env: Mapping[str, str] | None = None,
) -> tuple[CommandVerdict, list[Publication]]:
    """Judge a command as `judge` does, and return what it would publish."""
    text = _text(command)
    given = _variables(env or {})
    judging = Judging(policy or Policy.default(), root, text)
    scope = Scope(judging.policy.patterns("secret_names"), cwd=judging.paths.locate(cwd, "."))
    if "\0" in text or "\ufffd" in text.encode("utf-8", "replace").decode("utf-8"):
        judging.report(Event.UNPARSED, text[:200])
    try:
        if len(text) > LONGEST:
            raise TooComplex
        if given:
            judging.review(Call([Word("export")], text, given), scope)
        for name in given.keys() - _SET_BY_BASH:
            scope.assign(name, given[name])
        if isinstance(command, str):
            output = judging.run_script(text.replace("\0", ""), scope)
        else:
            output = judging.review(Call([Word(part.replace("\0", "")) for part in command], text), scope)
        judging.check_printed(output, text)
    except (TooComplex, RecursionError):
        judging.report(Event.TOO_COMPLEX, text[:200])
    return judging.verdict, judging.published


def is_name(text: str) -> bool:
    """Return whether a text can name a variable."""
    return re.fullmatch(_NAME, text) is not None


def _variables(env: Mapping[str, str]) -> dict[str, Word]:
    for name in env:
        if not is_name(name):
            hint = "Use letters, digits and underscores, a letter or an underscore first."
            raise Invalid(f"{name!r} is no name of a variable.", hint=hint, name=name)
    return {name: Word(value.replace("\0", "")) for name, value in env.items()}


def _text(command: str | list[str]) -> str:
    """Return a command as one line; raise Invalid for anything but text or a list of it."""
    if isinstance(command, str):
        return command
    if not isinstance(command, list) or not all(isinstance(part, str) for part in command):
        hint = "Pass a command line as text, or a list of argument texts."
        raise Invalid(f"A command is text or a list of text, not {type(command).__name__}.", hint=hint)
    if not command:
        raise Invalid("The list of arguments is empty.", hint="Pass at least a program.")
    return shlex.join(command)
