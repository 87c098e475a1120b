"""What a command prints, as far as that is known without running it."""

import base64
import binascii
import posixpath
from collections.abc import Callable

from decklog.guard.policy.programs import found_by
from decklog.guard.policy.use import Judge, Use
from decklog.guard.policy.words import UNKNOWN, Word, decode_ansi, join_taint

_DECODE = ("-d", "-D", "--decode", "-r", "-i")
# The parent of a directory that is not written by its own name.
_ABOVE = {"~": "/home", ".": "..", "..": "../.."}
_LISTS = ("-l", "--files-with-matches", "--files", "-L", "--files-without-match", "--name-only", "--name-status")


def output_of(judge: Judge, use: Use) -> Word:
    """Return what a command prints: its text where known, and its taint."""
    kind, text = use.program.get("output"), " ".join(word.text for word in use.call.argv[1:])
    for case in judge.policy.filed("outputs", "programs", use.name):
        condition = case.pattern("if")
        if condition is None or condition.search(text):
            kind = case.get("output")
            break
    known = _KINDS.get(kind)
    word = known(judge, use) if known is not None else None
    if word is not None:
        return word
    taint = use.stdin_taint if use.name in judge.policy.names("passing") else use.stdin_taint - {"endless"}
    if kind in ("network", "decoded", "environment", "settings", "endless", "secret"):
        taint |= {kind}
    if kind == "decoder" and use.arguments.has(_DECODE):
        taint |= {"decoded"}
    if use.program.get("language") == "shell":
        taint |= {"shell"}
    return Word(UNKNOWN, taint)


def _arguments(_judge: Judge, use: Use) -> Word:
    """Return what echo prints."""
    words, escapes = use.call.argv[1:], False
    while words and words[0].text in ("-e", "-n", "-E", "-ne", "-en"):
        escapes = escapes or "e" in words[0].text
        words = words[1:]
    text = " ".join(word.text for word in words)
    return Word(decode_ansi(text) if escapes else text, join_taint(words))


def _format(_judge: Judge, use: Use) -> Word:
    """Return what printf prints, its arguments in the place of the directives."""
    words = use.call.argv[1:]
    if not words or words[0].text == "-v":
        return Word("")
    parts, rest = decode_ansi(words[0].text).split("%s"), [word.text for word in words[1:]]
    if "%" in "".join(parts):
        text = " ".join([*parts, *(decode_ansi(item) for item in rest)])
    else:
        fill = iter(rest)
        text = parts[0] + "".join(next(fill, "") + part for part in parts[1:])
        text = "\n".join([text, *fill]) if parts[1:] else text
    return Word(text, join_taint(words))


def _contents(judge: Judge, use: Use) -> Word | None:
    """Return what cat prints: its input, or files the script has written."""
    if not use.operands or use.operands[0].text == "-":
        return use.call.stdin or Word(UNKNOWN)
    if any(word.text in judge.policy.names("endless") for word in use.operands):
        return Word(UNKNOWN, frozenset({"endless"}))
    if all(word.text == "/dev/null" for word in use.operands):
        return Word("")
    contents = [Word(word.content, word.taint) for word in use.operands if word.content is not None]
    contents = contents or [found for word in use.operands if (found := use.scope.written(word.text)) is not None]
    return Word("\n".join(word.text for word in contents), join_taint(contents)) if contents else None


def _decoder(_judge: Judge, use: Use) -> Word | None:
    """Return what a decoder prints where its input is known."""
    stdin = use.call.stdin
    if stdin is None or not stdin.is_known or not use.arguments.has(_DECODE):
        return None
    try:
        decoded = base64.b64decode(stdin.text.strip()) if use.name == "base64" else bytes.fromhex(stdin.text.strip())
    except (ValueError, binascii.Error):
        return None
    return Word(decoded.decode("utf-8", "replace").replace("\0", ""), stdin.taint | {"decoded"})


def _reversed(_judge: Judge, use: Use) -> Word | None:
    stdin = use.call.stdin
    return Word("\n".join(line[::-1] for line in stdin.text.split("\n")), stdin.taint | {"decoded"}) if stdin else None


def _path(_judge: Judge, use: Use) -> Word | None:
    """Return what dirname, basename and realpath print for a known path."""
    operands = [word for word in use.call.argv[1:] if not word.text.startswith("-")]
    if not operands:
        return None
    word = operands[-1]
    if use.name == "dirname":
        return Word(_ABOVE.get(word.text) or posixpath.dirname(word.text) or ".", word.taint)
    if use.name == "basename":
        return Word(UNKNOWN if word.text in _ABOVE else posixpath.basename(operands[0].text), word.taint)
    return word


def _found(judge: Judge, use: Use) -> Word:
    return Word("\n".join(word.text for word in found_by(judge, use)), join_taint(use.call.argv))


def _directory(_judge: Judge, use: Use) -> Word:
    """Return what ls prints: everything in the directory."""
    names = [word.text.rstrip("/") for word in use.operands if word.text]
    return Word(f"{names[0]}/*" if names and "*" not in names[0] else names[0] if names else "./*")


def _matches(judge: Judge, use: Use) -> Word | None:
    """Return what grep prints: names, or lines; of the environment only what is no secret by its name."""
    if use.arguments.has(_LISTS) and use.call.stdin is None:
        return Word(f"./{UNKNOWN}")
    pattern = use.operands[0].text if use.operands else UNKNOWN
    is_secret = judge.policy.patterns("secret_words").search(pattern)
    if "settings" in use.stdin_taint and is_secret:
        judge.role_of("settings-search", Word(pattern), use)
    if not is_secret and len(pattern.strip(".*^$")) > 1 and not use.arguments.has(("-v",)):
        return Word(UNKNOWN, use.stdin_taint - {"environment"})
    return None


def _environment(judge: Judge, use: Use) -> Word | None:
    """Return what env and printenv print: all variables, or one."""
    operands = [word for word in use.arguments.operands if use.name == "printenv" or "=" not in word.text]
    if not operands:
        return Word(UNKNOWN, frozenset({"environment"}))
    is_secret = any(judge.policy.patterns("secret_names").search(word.text) for word in operands)
    return Word(UNKNOWN, frozenset({"secret"}) if is_secret and use.name == "printenv" else use.stdin_taint)


def _variables(_judge: Judge, use: Use) -> Word:
    """Return what set, export and declare print: every variable if they are given none."""
    flags = set(use.arguments.flags)
    shows_all = not use.arguments.operands and (not flags or (use.name != "set" and flags <= {"-p", "-x"}))
    return Word(UNKNOWN, frozenset({"environment"})) if shows_all and not use.call.assigned else Word("")


_KINDS: dict[str, Callable[[Judge, Use], Word | None]] = {
    "arguments": _arguments,
    "format": _format,
    "contents": _contents,
    "decoder": _decoder,
    "reversed": _reversed,
    "path": _path,
    "found": _found,
    "directory": _directory,
    "matches": _matches,
    "variables": _variables,
    "all-variables": _environment,
    "stdin": lambda _judge, use: use.call.stdin or Word(UNKNOWN),
    "names": lambda _judge, use: Word(f"./{UNKNOWN}", use.stdin_taint - {"endless"}),
    "variable-names": lambda _judge, use: Word(UNKNOWN, use.stdin_taint - {"environment", "endless"}),
    "operand": lambda _judge, use: next(iter(use.arguments.operands), None),
    "cwd": lambda _judge, use: Word(use.scope.cwd),
    "root": lambda _judge, _use: Word("."),
    "branch": lambda _judge, use: Word(use.scope.branch or UNKNOWN),
    "scratch": lambda _judge, _use: Word(f"/tmp/tmp.{UNKNOWN}"),
    "nothing": lambda _judge, _use: Word(""),
    "unknown": lambda _judge, _use: Word(UNKNOWN),
}
