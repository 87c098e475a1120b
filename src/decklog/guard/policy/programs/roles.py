"""What is judged about a word by its role, where the role is more than what is done to a path."""

import re
import shlex

from decklog.guard.policy.programs.hosts import host_of, is_local
from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.shell.words import UNKNOWN, Word

_COMMAND_LINE = re.compile(r"[\s;|&`]|\$\(")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://|^(?:ext|fd)::|^git@|^(?:github|gitlab|bitbucket|gist|data):", re.IGNORECASE)
_QUOTED = re.compile(r"""["']([^"']+)["']""")
_SETTING = re.compile(r"-*([\w.-]+)[=:](.+)", re.DOTALL)
_STDIN = {"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}
_FILE_ADDRESS = re.compile(r"fileb?://([^:;,]+)")
_MOST_WORDS = 40


def check_value(judge: Judge, use: Use) -> None:
    """Judge an option's value of which nothing is known: another machine is asked about, a file is read."""
    for word in use.arguments.operands:
        if _leads_elsewhere(judge, word):
            judge.report("network-host", use.call.text)
        elif not _SCHEME.match(word.text):
            judge.path("read", word, use.scope, use.call.text)


def check_load(judge: Judge, use: Use) -> None:
    """Judge what a program loads as its settings or runs as its own: a file by where it lies, a command line by what it says."""
    for word in use.arguments.operands:
        if word.text in _STDIN:
            judge.report("piped-to-interpreter", use.call.text)
        elif word.content is not None:
            # What a command prints, given as a file to load, is code that nobody has seen.
            judge.report("option-runs-program", use.call.text)
        elif _leads_elsewhere(judge, word):
            judge.report("network-host", use.call.text)
        elif word.text.lstrip().startswith(("{", "[")):
            for found in _QUOTED.findall(word.text):
                _check_listed(judge, use, Word(found, word.taint), "load")
        elif _COMMAND_LINE.search(word.text.strip()):
            judge.report("option-runs-program", use.call.text)
            judge.run_text("shell", word, use.scope, use.call)
        else:
            _check_listed(judge, use, word, "load")


def check_subject(judge: Judge, use: Use) -> None:
    """Judge what a tool works on: it may read, write and run it."""
    for word in use.arguments.operands:
        if _leads_elsewhere(judge, word):
            judge.report("network-host", use.call.text)
        elif "/" not in word.text and judge.policy.patterns["publishing"].search(word.text):
            judge.report("deploy-target", use.call.text)
        elif not _SCHEME.match(word.text):
            judge.path("subject", Word(word.text.split("::")[0].lstrip("@"), word.taint), use.scope, use.call.text)


def check_host(judge: Judge, use: Use) -> None:
    """Judge the machine a client is told to talk to; a path is a socket of this one."""
    for word in use.arguments.operands:
        host = host_of(judge.policy, word.text)
        if word.text and not word.text.startswith("/") and not is_local(judge.policy, host):
            judge.report("network-host", use.call.text)


def check_search_path(judge: Judge, use: Use) -> None:
    """Judge the places from which code is loaded."""
    for word in use.arguments.operands:
        _check_listed(judge, use, word, "load")


def check_settings(judge: Judge, use: Use) -> None:
    """Judge options that are given in one text, such as those of another program in a variable."""
    for word in use.arguments.operands:
        words = _split(word.text)
        if len(words) > _MOST_WORDS:
            judge.report("too-complex", use.call.text)
        for text in words[:_MOST_WORDS]:
            _check_setting(judge, use, Word(text, word.taint))


def check_assignment(judge: Judge, use: Use) -> None:
    """Judge `NAME=VALUE` that a program is given for itself, by the name."""
    for word in use.arguments.operands:
        _check_setting(judge, use, word)


def _check_setting(judge: Judge, use: Use, word: Word) -> None:
    """Judge one option or setting: its value by the words of its name, a bare word as something to load."""
    found = _SETTING.fullmatch(word.text)
    if found is None:
        if not word.text.startswith("-"):
            _as(judge, use, "load", word)
        return
    if found[1] in judge.policy.names["harmless_settings"]:
        return
    # The kind of a setting may be written behind its name, as in `NAME:PATH=value`.
    value = found[2].partition("=")[2] if "=" in found[2] and "/" not in found[2].partition("=")[0] else found[2]
    first = value.split(maxsplit=1)[0] if _COMMAND_LINE.search(value.strip()) else ""
    if first and judge.policy.program(first.rsplit("/", 1)[-1]) is not None:
        # Whatever the name says, a value that begins with a program may be run as it stands.
        judge.run_text("shell", Word(value, word.taint), use.scope, use.call)
    _as(judge, use, judge.policy.role_by_name(found[1]), Word(value, word.taint))


def _as(judge: Judge, use: Use, role: str, word: Word) -> None:
    """Judge a word in a role."""
    inner = Use(use.name, use.call, use.program, use.arguments.of([word]), use.scope)
    if role in _CHECKS:
        _CHECKS[role](judge, inner)
    elif role == "program":
        judge.report("option-runs-program", use.call.text)
        judge.run_text("shell", word, use.scope, use.call)
    elif role != "text":
        judge.path(role, word, use.scope, use.call.text)


def _check_listed(judge: Judge, use: Use, word: Word, role: str) -> None:
    """Judge every path of a list that colons, commas or semicolons join."""
    named = _FILE_ADDRESS.fullmatch(word.text)
    if named:
        judge.path(role, Word(named[1], word.taint), use.scope, use.call.text)
        return
    for part in re.split(r"[:;,]", word.text):
        if part and part != UNKNOWN:
            judge.path(role, Word(part.lstrip("@="), word.taint), use.scope, use.call.text)


def _leads_elsewhere(judge: Judge, word: Word) -> bool:
    """Tell whether a word is the address of something on another machine."""
    if not _SCHEME.match(word.text) or word.text.startswith(("file:", "sqlite:")):
        return False
    return not is_local(judge.policy, host_of(judge.policy, word.text))


def _split(text: str) -> list[str]:
    """Cut options into words, at white space if their quotes do not match."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


_CHECKS = {
    "value": check_value,
    "load": check_load,
    "place": check_load,
    "subject": check_subject,
    "host": check_host,
    "search-path": check_search_path,
    "settings": check_settings,
}
