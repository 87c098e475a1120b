"""Roles that need more than a pattern; all others are described in the policy's `[[roles]]`."""

import re
from collections.abc import Callable

from decklog.guard.policy.languages import LANGUAGES
from decklog.guard.policy.script import recipes, split_words
from decklog.guard.policy.use import Call, Judge, Use
from decklog.guard.policy.verdict import Event
from decklog.guard.policy.words import UNKNOWN, Word, decode_ansi

_COMMAND_LINE = re.compile(r"[\s;|&`]|\$\(")
_SETTING = re.compile(r"-*([\w.-]+)[=:](.+)", re.DOTALL)
_STRINGS = re.compile(r"""(["'])((?:\\.|(?!\1)[^\\])*)\1""", re.DOTALL)
_SHEBANG = re.compile(r"#!\S*?(?:env\s+(?:-S\s+)?)?(\w+?)[\d.]*\s")
_MOST_WORDS = 40


def _shell(judge: Judge, word: Word, use: Use) -> None:
    """Judge a command line."""
    judge.run_text("shell", word, use.scope, use.call)


def _shebang(judge: Judge, word: Word, use: Use) -> None:
    """Judge a script by its interpreter."""
    found = _SHEBANG.match(word.text)
    program = judge.policy.program(found[1]) if found else None
    judge.run_text((program.get("language") if program else "") or "shell", word, use.scope, use.call)


def _strings(judge: Judge, word: Word, use: Use) -> None:
    """Judge a list of quoted strings as a command."""
    argv = [Word(found[2], word.taint) for found in _STRINGS.finditer(word.text)]
    if argv:
        judge.review(Call(argv, use.call.text), use.scope)


def _recipes(judge: Judge, word: Word, use: Use) -> None:
    """Judge the command lines of a makefile."""
    for command in recipes(word.text):
        judge.run_text("shell", Word(command, word.taint), use.scope, use.call)


def _later(judge: Judge, word: Word, use: Use) -> None:
    """Judge a command that a build tool's file will hold."""
    if judge.is_refused("shell", word, use.scope, use.call):
        judge.report(Event.REFUSED_LATER, use.call.text)


def _edited(judge: Judge, word: Word, use: Use) -> None:
    """Judge text that an editor puts into the files it works on."""
    plain = decode_ansi(word.text).lstrip("\\ \t\n")
    for file in use.operands:
        for role in judge.file_roles(file.text):
            if any(judge.is_refused(role, Word("\t" + text), use.scope, use.call) for text in (plain, plain.removeprefix("t"))):
                judge.report(Event.REFUSED_LATER, use.call.text)


def _keep(judge: Judge, word: Word, use: Use) -> None:
    """Judge a file that gets what is on standard input."""
    judge.path("write", word, use.scope, use.call.text)
    judge.write(word.text, use.call.stdin or Word(UNKNOWN), use.scope, use.call, append=use.arguments.has(("-a", "--append")))


def _load(judge: Judge, word: Word, use: Use) -> None:
    """Judge the output of a command that is loaded as code."""
    if word.content is not None:
        judge.report(Event.STARTS_PROGRAM, use.call.text)


def _script_file(judge: Judge, word: Word, use: Use) -> None:
    """Judge a script that is read from a file, in the role of the program's own code."""
    is_input = word.text in ("-", "/dev/stdin", "/dev/fd/0")
    found = use.call.stdin if is_input else use.scope.written(word.text)
    if found is None and word.content is not None:
        found = Word(word.content, word.taint)
    if found is not None and found.is_known:
        judge.role_of(use.program.get("script"), found, use)
    elif found is not None or is_input:
        judge.report(Event.OPAQUE_CODE, use.call.text)
    if found is None:
        judge.role_of("load", word, use)


def _settings(judge: Judge, word: Word, use: Use) -> None:
    """Judge options that are given in one text."""
    texts = split_words(word.text)
    if len(texts) > _MOST_WORDS:
        judge.report(Event.TOO_COMPLEX, use.call.text)
    for text in texts[:_MOST_WORDS]:
        judge.role_of("assignment", Word(text, word.taint), use)


def _assignment(judge: Judge, word: Word, use: Use) -> None:
    """Judge `NAME=VALUE` by the words of its name; a bare word is loaded."""
    found = _SETTING.fullmatch(word.text)
    if found is None:
        if not word.text.startswith("-"):
            judge.role_of("load", word, use)
        return
    if found[1] in judge.policy.names("harmless_settings"):
        return
    # The type of a setting may follow its name, as in `NAME:PATH=value`.
    value = found[2].partition("=")[2] if "=" in found[2] and "/" not in found[2].partition("=")[0] else found[2]
    first = value.split(maxsplit=1)[0] if _COMMAND_LINE.search(value.strip()) else ""
    if first and judge.knows(first.rsplit("/", 1)[-1]):
        judge.run_text("shell", Word(value, word.taint), use.scope, use.call)
    judge.role_of(judge.policy.role_by_name(found[1]), Word(value, word.taint), use)


def _refspec(judge: Judge, word: Word, use: Use) -> None:
    """Judge the branch that a push changes."""
    source, colon, target = word.text.lstrip("+").partition(":")
    target = target if colon else source
    if target.upper() in ("HEAD", "@"):
        target = use.scope.branch or UNKNOWN
    judge.role_of("branch", Word(target.removeprefix("refs/").removeprefix("heads/").removeprefix("for/")), use)


def _python(judge: Judge, word: Word, use: Use) -> None:
    """Judge Python code."""
    # Most commands need no syntax tree.
    from decklog.guard.policy.python_code import check_python

    check_python(judge, word, use)


BUILTIN_ROLES: dict[str, Callable[[Judge, Word, Use], None]] = {
    "shell": _shell,
    "shebang": _shebang,
    "strings": _strings,
    "recipes": _recipes,
    "later": _later,
    "edited": _edited,
    "keep": _keep,
    "load": _load,
    "place": _load,
    "script-file": _script_file,
    "settings": _settings,
    "assignment": _assignment,
    "refspec": _refspec,
    "python-code": _python,
    **LANGUAGES,
}
