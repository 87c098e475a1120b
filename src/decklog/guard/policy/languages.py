"""Inline code in languages without a parser here: judged by its calls, names and strings."""

import re
from collections.abc import Callable
from functools import partial

from decklog.guard.policy.use import Judge, Use
from decklog.guard.policy.verdict import Event
from decklog.guard.policy.words import UNKNOWN, Word, decode_ansi

_IDENTIFIER = re.compile(r"(?<![\w.$@%])[A-Za-z_]\w*(?!\w|\s*:(?!:))")
_DOTTED_IDENTIFIER = re.compile(r"(?<![\w.$@%:])[A-Za-z_.][\w.]*(?:::[\w.]+)?(?!\w)")
_METHOD = re.compile(r"(?:(?<!\.)\.|\?\.|->|::)\s*([A-Za-z_]\w*[!?]?)")
_NAME = re.compile(r"[A-Za-z_]\w*")
_STRING = re.compile(r"""(["'])((?:\\.|(?!\1)[^\\\n]){0,400})\1""", re.DOTALL)
_INSERTED = re.compile(r"[#@$]\{[^}]*\}?|\{\$[^}]*\}?|\$\([^)]*\)?")
# A slash with no value before it begins a regular expression.
_REGEX = re.compile(
    r"(?:(?<=[(=,~!&|;{}\n])|(?<=\bif)|(?<=\bunless)|(?<=\band)|(?<=\bor)|(?<=\breturn)|(?<=\bfor)|^)\s*/(?![/*])(?:\\.|(?![#@?]\{)[^/\\\n`]){1,200}/[gimsuxy]*"
)
_COMMENT = re.compile(r"(?m)(?<![\w:'\"])//[^\n]*$|(?<![$\w'\"])#(?!\{)[^\n]*$")
_PROPERTY = re.compile(r"->\s*[A-Za-z_]\w*+(?!\s*\()")
_LONGEST = 8_000


def check_snippet(language: str, judge: Judge, word: Word, use: Use) -> None:
    """Judge code: its calls by the policy's roles; it is risky unless every name in it is known to compute or print."""
    code = word.text
    # A regular expression of JavaScript has a method `exec` that runs nothing.
    starts = language != "javascript" or judge.policy.patterns("process_module").search(code)
    for role in ("any-code", "code-strings", "code-calls", f"{language}-calls", *(["shell-calls"] if starts else [])):
        judge.role_of(role, word, use)
    for found in judge.policy.patterns("written_file").finditer(code):
        for text in judge.policy.patterns("strings").finditer(code) if judge.file_roles(found[2]) else ():
            if " " in text[2]:
                judge.write(found[2], Word(decode_ansi(text[2])), use.scope, use.call)
                judge.role_of("later", Word(text[2]), use)
    if UNKNOWN in code or len(code) >= _LONGEST or not _is_harmless(judge, code[:_LONGEST], language):
        judge.report(Event.RISKY_CODE, use.call.text)


def _is_harmless(judge: Judge, code: str, language: str) -> bool:
    """Return whether code only computes and prints. Files it names are judged separately."""
    patterns = judge.policy.patterns
    if patterns("substitution").fullmatch(code.strip()):
        return True
    code = patterns("literal_writes").sub(" ", patterns("read_calls").sub(" ", code))
    if not patterns("file_module_use").search(code):
        code = patterns("file_module").sub(" ", code)
    if language == "code":
        bare = patterns("strings").sub(" ", patterns("local_module").sub(" ", code))
        own = {next(filter(None, found.groups())) for found in patterns("declared").finditer(code)}
        return not patterns("risky_code").search(code) and own | judge.policy.names("safe_code") >= set(_IDENTIFIER.findall(bare))
    declared = _declared(judge, _STRING.sub(_keep_inserted, code))
    for part in ("loopback_fetch", "module_use", "local_module"):
        code = patterns(part).sub(" ", code)
    bare = _COMMENT.sub("", _REGEX.sub(" 0 ", _STRING.sub(_keep_inserted, code)))
    bare = patterns("harmless_parts").sub(" 0 ", bare)
    if patterns("made_up_call").search(bare):
        return False
    bare = _PROPERTY.sub(" ", bare)
    risky = patterns("risky_method_javascript" if language == "javascript" else "risky_method")
    if any(map(risky.search, _METHOD.findall(bare))):
        return False
    safe = judge.policy.names("safe_" + language)
    return all(
        name in safe or name in declared for name in (_DOTTED_IDENTIFIER if language == "r" else _IDENTIFIER).findall(bare)
    )


def _keep_inserted(found: re.Match[str]) -> str:
    """Leave of a string only the code inserted into it."""
    inserted = " ".join(_INSERTED.findall(found[2])) if found[1] == '"' else ""
    return f'"" {inserted} ' if inserted else '""'


def _declared(judge: Judge, bare: str) -> set[str]:
    """Return the names that code declares: parameters, and variables that it never calls."""
    names: set[str] = set()
    for found in judge.policy.patterns("declared_names").finditer(bare):
        names.update(_NAME.findall(next(filter(None, found.groups()), "")))
    for found in judge.policy.patterns("assigned_names").finditer(bare):
        names.update(name for name in _NAME.findall(found[1]) if not re.search(rf"\b{name}\s*[(\"]", bare))
    return names


LANGUAGES: dict[str, Callable[[Judge, Word, Use], None]] = {
    name: partial(check_snippet, name) for name in ("code", "javascript", "ruby", "php", "perl", "lua", "r", "julia", "elixir")
}
