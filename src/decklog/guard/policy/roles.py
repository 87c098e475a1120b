"""Roles that need more than a pattern; all others are described in the policy's `[[roles]]`."""

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from decklog.guard.policy.programs import recipe_lines
from decklog.guard.policy.verdict import Event
from decklog.guard.policy.words import UNKNOWN, Word, decode_ansi, split_words

if TYPE_CHECKING:
    from decklog.guard.policy.engine import CommandCheck

_MOST_WORDS = 40


def _check_shebang(command: "CommandCheck", word: Word) -> None:
    """Judge a script by its interpreter."""
    found = command.policy.patterns("shebang").match(word.text)
    program = command.policy.programs.get(found[1]) if found else None
    command.run_text((program or {}).get("language", "shell"), word)


def _check_strings(command: "CommandCheck", word: Word) -> None:
    """Judge a list of quoted strings as a command."""
    argv = [Word(found[2], word.taint) for found in command.policy.patterns("quoted_strings").finditer(word.text)]
    if argv:
        command.run(argv, keeps_stdin=False)


def _check_recipes(command: "CommandCheck", word: Word) -> None:
    """Judge the command lines of a makefile."""
    for line in recipe_lines(word.text):
        command.run_text("shell", Word(line, word.taint))


def _check_deferred_command(command: "CommandCheck", word: Word) -> None:
    """Judge a command that will be part of a build file."""
    if command.is_refused("shell", word):
        command.report(Event.REFUSED_LATER)


def _check_edited_text(command: "CommandCheck", word: Word) -> None:
    """Judge text that an editor inserts into its files."""
    plain = decode_ansi(word.text).lstrip("\\ \t\n")
    for file in command.operands:
        for role in command.policy.file_roles(file.text):
            if any(command.is_refused(role, Word("\t" + text)) for text in (plain, plain.removeprefix("t"))):
                command.report(Event.REFUSED_LATER)


def _check_kept_input(command: "CommandCheck", word: Word) -> None:
    """Judge a file that receives standard input."""
    command.check_path("write", word)
    command.write(word.text, command.call.stdin or Word(UNKNOWN), append=command.arguments.has(("-a", "--append")))


def _check_loaded_output(command: "CommandCheck", word: Word) -> None:
    """Judge the output of a command that is loaded as code."""
    if word.content is not None:
        command.report(Event.STARTS_PROGRAM)


def _check_script_file(command: "CommandCheck", word: Word) -> None:
    """Judge a script that is read from a file, in the role of the program's own code."""
    is_input = word.text in ("-", "/dev/stdin", "/dev/fd/0")
    found = command.call.stdin if is_input else command.scope.find_written_content(word.text)
    if found is None and word.content is not None:
        found = Word(word.content, word.taint)
    if found is not None and found.is_known:
        command.check(command.program.get("script", ""), found)
    elif found is not None or is_input:
        command.report(Event.OPAQUE_CODE)
    if found is None:
        command.check("load", word)


def _check_settings(command: "CommandCheck", word: Word) -> None:
    """Judge options that are passed as one text."""
    texts = split_words(word.text)
    if len(texts) > _MOST_WORDS:
        command.report(Event.TOO_COMPLEX)
    for text in texts[:_MOST_WORDS]:
        command.check("assignment", Word(text, word.taint))


def _check_assignment(command: "CommandCheck", word: Word) -> None:
    """Judge `NAME=VALUE` by the words of its name; a bare word is loaded."""
    found = command.policy.patterns("setting").fullmatch(word.text)
    if found is None:
        if not word.text.startswith("-"):
            command.check("load", word)
        return
    if found[1] in command.policy.names["harmless_settings"]:
        return
    # The type of a setting may follow its name, as in `NAME:PATH=value`.
    value = found[2].partition("=")[2] if "=" in found[2] and "/" not in found[2].partition("=")[0] else found[2]
    first = value.split(maxsplit=1)[0] if command.policy.patterns("command_line").search(value.strip()) else ""
    if first and command.policy.has_program(first.rsplit("/", 1)[-1]):
        command.run_text("shell", Word(value, word.taint))
    command.check(command.policy.role_by_name(found[1]), Word(value, word.taint))


def _check_refspec(command: "CommandCheck", word: Word) -> None:
    """Judge the branch that a push changes."""
    source, colon, target = word.text.lstrip("+").partition(":")
    target = target if colon else source
    if target.upper() in ("HEAD", "@"):
        target = command.scope.branch or UNKNOWN
    command.check("branch", Word(target.removeprefix("refs/").removeprefix("heads/").removeprefix("for/")))


def _check_python_code(command: "CommandCheck", word: Word) -> None:
    """Judge Python code."""
    # Most commands need no syntax tree.
    from decklog.guard.policy.python_code import check_python

    check_python(command, word)


# Inline code in languages without a parser here: judged by its calls, names and strings.

_NAME = re.compile(r"[A-Za-z_]\w*")
_LONGEST = 8_000


def _check_snippet(language: str, command: "CommandCheck", word: Word) -> None:
    """Judge the calls in code by their roles. Code is risky unless all its names are known to compute or print."""
    code, patterns = word.text, command.policy.patterns
    # A regular expression of JavaScript has a method `exec` that runs nothing.
    starts = language != "javascript" or patterns("process_module").search(code)
    for role in ("any-code", "code-strings", "code-calls", f"{language}-calls", *(["shell-calls"] if starts else [])):
        command.check(role, word)
    for found in patterns("written_file").finditer(code):
        for text in patterns("strings").finditer(code) if command.policy.file_roles(found[2]) else ():
            if " " in text[2]:
                command.write(found[2], Word(decode_ansi(text[2])))
                command.check("later", Word(text[2]))
    if UNKNOWN in code or len(code) >= _LONGEST or not _is_harmless(command, code, language):
        command.report(Event.RISKY_CODE)


def _is_harmless(command: "CommandCheck", code: str, language: str) -> bool:
    """Return whether code only computes and prints. Files it names are judged separately."""
    patterns, names = command.policy.patterns, command.policy.names
    if patterns("substitution").fullmatch(code.strip()):
        return True
    code = patterns("literal_writes").sub(" ", patterns("read_calls").sub(" ", code))
    if not patterns("file_module_use").search(code):
        code = patterns("file_module").sub(" ", code)
    if language == "code":
        bare = patterns("strings").sub(" ", patterns("local_module").sub(" ", code))
        own = {next(filter(None, found.groups())) for found in patterns("declared").finditer(code)}
        return not patterns("risky_code").search(code) and own | names["safe_code"] >= set(patterns("identifier").findall(bare))
    known = names["safe_" + language] | _find_declared_names(command, _without_strings(command, code))
    for part in ("loopback_fetch", "module_use", "local_module"):
        code = patterns(part).sub(" ", code)
    bare = patterns("code_comment").sub("", patterns("code_regex").sub(" 0 ", _without_strings(command, code)))
    bare = patterns("harmless_parts").sub(" 0 ", bare)
    if patterns("made_up_call").search(bare):
        return False
    bare = patterns("code_property").sub(" ", bare)
    risky = patterns("risky_method_javascript" if language == "javascript" else "risky_method")
    if any(map(risky.search, patterns("code_method").findall(bare))):
        return False
    return known >= set(patterns("dotted_identifier" if language == "r" else "identifier").findall(bare))


def _without_strings(command: "CommandCheck", code: str) -> str:
    """Return code in which each string is reduced to the code inserted into it."""

    def kept(found: re.Match[str]) -> str:
        inserted = " ".join(command.policy.patterns("inserted_code").findall(found[2])) if found[1] == '"' else ""
        return f'"" {inserted} ' if inserted else '""'

    return command.policy.patterns("code_string").sub(kept, code)


def _find_declared_names(command: "CommandCheck", bare: str) -> set[str]:
    """Return the names declared in code: parameters, and variables that are never called."""
    names: set[str] = set()
    for found in command.policy.patterns("declared_names").finditer(bare):
        names.update(_NAME.findall(next(filter(None, found.groups()), "")))
    for found in command.policy.patterns("assigned_names").finditer(bare):
        names.update(name for name in _NAME.findall(found[1]) if not re.search(rf"\b{name}\s*[(\"]", bare))
    return names


BUILTIN_ROLES: dict[str, Callable[["CommandCheck", Word], object]] = {
    "shell": lambda command, word: command.run_text("shell", word),
    "shebang": _check_shebang,
    "strings": _check_strings,
    "recipes": _check_recipes,
    "later": _check_deferred_command,
    "edited": _check_edited_text,
    "keep": _check_kept_input,
    "load": _check_loaded_output,
    "place": _check_loaded_output,
    "script-file": _check_script_file,
    "settings": _check_settings,
    "assignment": _check_assignment,
    "refspec": _check_refspec,
    "python-code": _check_python_code,
}
for _language in ("code", "javascript", "ruby", "php", "perl", "lua", "r", "julia", "elixir"):
    BUILTIN_ROLES[_language] = partial(_check_snippet, _language)
