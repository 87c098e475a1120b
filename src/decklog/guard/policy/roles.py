"""Roles that need more than a pattern; all others are described in the policy's `[[roles]]`."""

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from decklog.guard.policy.programs import recipes
from decklog.guard.policy.verdict import Event
from decklog.guard.policy.words import UNKNOWN, Word, decode_ansi, split_words

if TYPE_CHECKING:
    from decklog.guard.policy.engine import CommandCheck

_MOST_WORDS = 40


def _shebang(use: "CommandCheck", word: Word) -> None:
    """Judge a script by its interpreter."""
    found = use.policy.patterns("shebang").match(word.text)
    program = use.policy.programs.get(found[1]) if found else None
    use.run_text((program or {}).get("language", "shell"), word)


def _strings(use: "CommandCheck", word: Word) -> None:
    """Judge a list of quoted strings as a command."""
    argv = [Word(found[2], word.taint) for found in use.policy.patterns("quoted_strings").finditer(word.text)]
    if argv:
        use.run(argv, keeps_stdin=False)


def _recipes(use: "CommandCheck", word: Word) -> None:
    """Judge the command lines of a makefile."""
    for command in recipes(word.text):
        use.run_text("shell", Word(command, word.taint))


def _later(use: "CommandCheck", word: Word) -> None:
    """Judge a command that a build tool's file will hold."""
    if use.is_refused("shell", word):
        use.report(Event.REFUSED_LATER)


def _edited(use: "CommandCheck", word: Word) -> None:
    """Judge text that an editor puts into the files it works on."""
    plain = decode_ansi(word.text).lstrip("\\ \t\n")
    for file in use.operands:
        for role in use.policy.file_roles(file.text):
            if any(use.is_refused(role, Word("\t" + text)) for text in (plain, plain.removeprefix("t"))):
                use.report(Event.REFUSED_LATER)


def _keep(use: "CommandCheck", word: Word) -> None:
    """Judge a file that gets what is on standard input."""
    use.check_path("write", word)
    use.write(word.text, use.call.stdin or Word(UNKNOWN), append=use.arguments.has(("-a", "--append")))


def _load(use: "CommandCheck", word: Word) -> None:
    """Judge the output of a command that is loaded as code."""
    if word.content is not None:
        use.report(Event.STARTS_PROGRAM)


def _script_file(use: "CommandCheck", word: Word) -> None:
    """Judge a script that is read from a file, in the role of the program's own code."""
    is_input = word.text in ("-", "/dev/stdin", "/dev/fd/0")
    found = use.call.stdin if is_input else use.scope.written(word.text)
    if found is None and word.content is not None:
        found = Word(word.content, word.taint)
    if found is not None and found.is_known:
        use.check(use.program.get("script", ""), found)
    elif found is not None or is_input:
        use.report(Event.OPAQUE_CODE)
    if found is None:
        use.check("load", word)


def _settings(use: "CommandCheck", word: Word) -> None:
    """Judge options that are given in one text."""
    texts = split_words(word.text)
    if len(texts) > _MOST_WORDS:
        use.report(Event.TOO_COMPLEX)
    for text in texts[:_MOST_WORDS]:
        use.check("assignment", Word(text, word.taint))


def _assignment(use: "CommandCheck", word: Word) -> None:
    """Judge `NAME=VALUE` by the words of its name; a bare word is loaded."""
    found = use.policy.patterns("setting").fullmatch(word.text)
    if found is None:
        if not word.text.startswith("-"):
            use.check("load", word)
        return
    if found[1] in use.policy.names["harmless_settings"]:
        return
    # The type of a setting may follow its name, as in `NAME:PATH=value`.
    value = found[2].partition("=")[2] if "=" in found[2] and "/" not in found[2].partition("=")[0] else found[2]
    first = value.split(maxsplit=1)[0] if use.policy.patterns("command_line").search(value.strip()) else ""
    if first and use.policy.knows(first.rsplit("/", 1)[-1]):
        use.run_text("shell", Word(value, word.taint))
    use.check(use.policy.role_by_name(found[1]), Word(value, word.taint))


def _refspec(use: "CommandCheck", word: Word) -> None:
    """Judge the branch that a push changes."""
    source, colon, target = word.text.lstrip("+").partition(":")
    target = target if colon else source
    if target.upper() in ("HEAD", "@"):
        target = use.scope.branch or UNKNOWN
    use.check("branch", Word(target.removeprefix("refs/").removeprefix("heads/").removeprefix("for/")))


def _python(use: "CommandCheck", word: Word) -> None:
    """Judge Python code."""
    # Most commands need no syntax tree.
    from decklog.guard.policy.python_code import check_python

    check_python(use, word)


# Inline code in languages without a parser here: judged by its calls, names and strings.

_NAME = re.compile(r"[A-Za-z_]\w*")
_LONGEST = 8_000


def _snippet(language: str, use: "CommandCheck", word: Word) -> None:
    """Judge code: its calls by the policy's roles; it is risky unless every name in it is known to compute or print."""
    code, patterns = word.text, use.policy.patterns
    # A regular expression of JavaScript has a method `exec` that runs nothing.
    starts = language != "javascript" or patterns("process_module").search(code)
    for role in ("any-code", "code-strings", "code-calls", f"{language}-calls", *(["shell-calls"] if starts else [])):
        use.check(role, word)
    for found in patterns("written_file").finditer(code):
        for text in patterns("strings").finditer(code) if use.policy.file_roles(found[2]) else ():
            if " " in text[2]:
                use.write(found[2], Word(decode_ansi(text[2])))
                use.check("later", Word(text[2]))
    if UNKNOWN in code or len(code) >= _LONGEST or not _is_harmless(use, code, language):
        use.report(Event.RISKY_CODE)


def _is_harmless(use: "CommandCheck", code: str, language: str) -> bool:
    """Return whether code only computes and prints. Files it names are judged separately."""
    patterns, names = use.policy.patterns, use.policy.names
    if patterns("substitution").fullmatch(code.strip()):
        return True
    code = patterns("literal_writes").sub(" ", patterns("read_calls").sub(" ", code))
    if not patterns("file_module_use").search(code):
        code = patterns("file_module").sub(" ", code)
    if language == "code":
        bare = patterns("strings").sub(" ", patterns("local_module").sub(" ", code))
        own = {next(filter(None, found.groups())) for found in patterns("declared").finditer(code)}
        return not patterns("risky_code").search(code) and own | names["safe_code"] >= set(patterns("identifier").findall(bare))
    known = names["safe_" + language] | _declared(use, _without_strings(use, code))
    for part in ("loopback_fetch", "module_use", "local_module"):
        code = patterns(part).sub(" ", code)
    bare = patterns("code_comment").sub("", patterns("code_regex").sub(" 0 ", _without_strings(use, code)))
    bare = patterns("harmless_parts").sub(" 0 ", bare)
    if patterns("made_up_call").search(bare):
        return False
    bare = patterns("code_property").sub(" ", bare)
    risky = patterns("risky_method_javascript" if language == "javascript" else "risky_method")
    if any(map(risky.search, patterns("code_method").findall(bare))):
        return False
    return known >= set(patterns("dotted_identifier" if language == "r" else "identifier").findall(bare))


def _without_strings(use: "CommandCheck", code: str) -> str:
    """Leave of each string only the code inserted into it."""

    def kept(found: re.Match[str]) -> str:
        inserted = " ".join(use.policy.patterns("inserted_code").findall(found[2])) if found[1] == '"' else ""
        return f'"" {inserted} ' if inserted else '""'

    return use.policy.patterns("code_string").sub(kept, code)


def _declared(use: "CommandCheck", bare: str) -> set[str]:
    """Return the names that code declares: parameters, and variables that it never calls."""
    names: set[str] = set()
    for found in use.policy.patterns("declared_names").finditer(bare):
        names.update(_NAME.findall(next(filter(None, found.groups()), "")))
    for found in use.policy.patterns("assigned_names").finditer(bare):
        names.update(name for name in _NAME.findall(found[1]) if not re.search(rf"\b{name}\s*[(\"]", bare))
    return names


BUILTIN_ROLES: dict[str, Callable[["CommandCheck", Word], object]] = {
    "shell": lambda use, word: use.run_text("shell", word),
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
}
for _language in ("code", "javascript", "ruby", "php", "perl", "lua", "r", "julia", "elixir"):
    BUILTIN_ROLES[_language] = partial(_snippet, _language)
