"""What a command prints and leaves behind, as far as that is known without running it."""

import posixpath
import re
from binascii import a2b_base64
from collections.abc import Callable
from typing import TYPE_CHECKING

from decklog.guard.policy.programs import found_by
from decklog.guard.policy.verdict import Publication
from decklog.guard.policy.words import UNKNOWN, Word, decode_ansi, join_taint

if TYPE_CHECKING:
    from decklog.guard.policy.engine import CommandCheck

_DECODE = ("-d", "-D", "--decode", "-r", "-i")
# The parent of a directory that is not written by its own name.
_ABOVE = {"~": "/home", ".": "..", "..": "../.."}
_LISTS = ("-l", "--files-with-matches", "--files", "-L", "--files-without-match", "--name-only", "--name-status")


def output_of(use: "CommandCheck") -> Word:
    """Return what a command prints: its text where known, and its taint."""
    kind, text = use.program.get("output"), " ".join(word.text for word in use.call.argv[1:])
    for case in use.policy.outputs.get(use.name, ()):
        if re.search(case.get("if", ""), text):
            kind = case["output"]
            break
    word = _KINDS[kind](use) if kind in _KINDS else None
    if word is not None:
        return word
    taint = use.stdin_taint if use.name in use.policy.names["passing"] else use.stdin_taint - {"endless"}
    if kind in ("network", "decoded", "environment", "settings", "endless", "secret"):
        taint |= {kind}
    if kind == "decoder" and use.arguments.has(_DECODE):
        taint |= {"decoded"}
    if use.program.get("language") == "shell":
        taint |= {"shell"}
    return Word(UNKNOWN, taint)


def _arguments(use: "CommandCheck") -> Word:
    """Return what echo prints."""
    words, escapes = use.call.argv[1:], False
    while words and words[0].text in ("-e", "-n", "-E", "-ne", "-en"):
        escapes = escapes or "e" in words[0].text
        words = words[1:]
    text = " ".join(word.text for word in words)
    return Word(decode_ansi(text) if escapes else text, join_taint(words))


def _format(use: "CommandCheck") -> Word:
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


def _contents(use: "CommandCheck") -> Word | None:
    """Return what cat prints: its input, or files the script has written."""
    if not use.operands or use.operands[0].text == "-":
        return use.call.stdin or Word(UNKNOWN)
    if any(word.text in use.policy.names["endless"] for word in use.operands):
        return Word(UNKNOWN, frozenset({"endless"}))
    if all(word.text == "/dev/null" for word in use.operands):
        return Word("")
    contents = [Word(word.content, word.taint) for word in use.operands if word.content is not None]
    contents = contents or [found for word in use.operands if (found := use.scope.written(word.text)) is not None]
    return Word("\n".join(word.text for word in contents), join_taint(contents)) if contents else None


def _decoder(use: "CommandCheck") -> Word | None:
    """Return what a decoder prints where its input is known."""
    stdin = use.call.stdin
    if stdin is None or not stdin.is_known or not use.arguments.has(_DECODE):
        return None
    try:
        decoded = a2b_base64(stdin.text.strip()) if use.name == "base64" else bytes.fromhex(stdin.text.strip())
    except ValueError:
        return None
    return Word(decoded.decode("utf-8", "replace").replace("\0", ""), stdin.taint | {"decoded"})


def _reversed(use: "CommandCheck") -> Word | None:
    stdin = use.call.stdin
    return Word("\n".join(line[::-1] for line in stdin.text.split("\n")), stdin.taint | {"decoded"}) if stdin else None


def _path(use: "CommandCheck") -> Word | None:
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


def _found(use: "CommandCheck") -> Word:
    return Word("\n".join(word.text for word in found_by(use)), join_taint(use.call.argv))


def _directory(use: "CommandCheck") -> Word:
    """Return what ls prints: everything in the directory."""
    names = [word.text.rstrip("/") for word in use.operands if word.text]
    return Word(f"{names[0]}/*" if names and "*" not in names[0] else names[0] if names else "./*")


def _matches(use: "CommandCheck") -> Word | None:
    """Return what grep prints: names, or lines; of the environment only what is no secret by its name."""
    if use.arguments.has(_LISTS) and use.call.stdin is None:
        return Word(f"./{UNKNOWN}")
    pattern = use.operands[0].text if use.operands else UNKNOWN
    is_secret = use.policy.patterns("secret_words").search(pattern)
    if "settings" in use.stdin_taint and is_secret:
        use.check("settings-search", Word(pattern))
    if not is_secret and len(pattern.strip(".*^$")) > 1 and not use.arguments.has(("-v",)):
        return Word(UNKNOWN, use.stdin_taint - {"environment"})
    return None


def _environment(use: "CommandCheck") -> Word | None:
    """Return what env and printenv print: all variables, or one."""
    operands = [word for word in use.arguments.operands if use.name == "printenv" or "=" not in word.text]
    if not operands:
        return Word(UNKNOWN, frozenset({"environment"}))
    is_secret = any(use.policy.patterns("secret_names").search(word.text) for word in operands)
    return Word(UNKNOWN, frozenset({"secret"}) if is_secret and use.name == "printenv" else use.stdin_taint)


def _variables(use: "CommandCheck") -> Word:
    """Return what set, export and declare print: every variable if they are given none."""
    flags = set(use.arguments.flags)
    shows_all = not use.arguments.operands and (not flags or (use.name != "set" and flags <= {"-p", "-x"}))
    return Word(UNKNOWN, frozenset({"environment"})) if shows_all and not use.call.assigned else Word("")


_KINDS: dict[str, Callable[["CommandCheck"], Word | None]] = {
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
    "stdin": lambda use: use.call.stdin or Word(UNKNOWN),
    "names": lambda use: Word(f"./{UNKNOWN}", use.stdin_taint - {"endless"}),
    "variable-names": lambda use: Word(UNKNOWN, use.stdin_taint - {"environment", "endless"}),
    "operand": lambda use: next(iter(use.arguments.operands), None),
    "cwd": lambda use: Word(use.scope.cwd),
    "root": lambda _use: Word("."),
    "branch": lambda use: Word(use.scope.branch or UNKNOWN),
    "scratch": lambda _use: Word(f"/tmp/tmp.{UNKNOWN}"),
    "nothing": lambda _use: Word(""),
    "unknown": lambda _use: Word(UNKNOWN),
}


# What a command leaves behind


def note_effects(use: "CommandCheck") -> None:
    """Remember the files, links, branches and publications that a command makes."""
    entry, judgement = use.program, use.judgement
    if use.name in use.policy.names["compilers"] and use.operands:
        target = use.arguments.value("-o", "--output")
        if target is not None and all(_is_judged_source(use, word) for word in use.operands):
            use.scope.built(target.text)
    if "saves" in entry and ("*" in entry["saves"] or use.arguments.has(entry["saves"])):
        place = use.arguments.value("-P", "--directory-prefix", "--output-dir")
        for word in use.operands:
            name = word.text.rstrip("/").rsplit("/", 1)[-1]
            use.scope.wrote(f"{place.text}/{name}" if place else name, Word(UNKNOWN, frozenset({"network"})))
    if "links" in entry:
        _note_copies(use, is_link="*" in entry["links"] or use.arguments.has(entry["links"]))
    if "branch" in entry:
        new = use.arguments.value(*entry["branch"])
        if new is not None or (use.operands and "--" not in use.arguments.flags):
            use.scope.branch = (new or use.operands[0]).text
    judgement.moves_commits = judgement.moves_commits or use.sub.partition(" ")[0] in entry.get("moves_commits", ())
    if use.sub in entry.get("publishes", ()) and not use.arguments.has(entry.get("dry_run", ())):
        options = tuple((option, word.text) for option, word in use.arguments.values)
        folder = next((value for option, value in options if option == "-C"), ".") if use.name == "git" else "."
        cwd = use.paths.locate(folder, use.scope.cwd)
        operands, flags = tuple(word.text for word in use.operands), frozenset(use.arguments.flags)
        judgement.published.append(Publication(use.name, operands, flags, options, cwd, judgement.moves_commits))


def _is_judged_source(use: "CommandCheck", word: Word) -> bool:
    """Return whether a source is one of the repository, or text of the script that reaches nothing outside."""
    if use.paths.classify(word.text, use.scope.cwd) in ("inside", "top"):
        return word.text != "-"
    written = use.scope.written(word.text) if use.scope.has_made(word.text) else None
    return written is not None and not use.policy.patterns("native_risk").search(written.text)


def _note_copies(use: "CommandCheck", *, is_link: bool) -> None:
    """Remember the links that a command makes, or the file it copies that the script has written."""
    folder = use.arguments.value("-t", "--target-directory")
    operands = use.operands if folder or len(use.operands) > 1 else [*use.operands, Word(".")]
    *sources, last = [*operands, folder] if folder else operands
    is_folder = folder is not None or len(sources) > 1 or last.text.endswith(("/", "."))
    for source in sources:
        place = posixpath.join(last.text, posixpath.basename(source.text)) if is_folder else last.text
        content = use.scope.written(source.text)
        if is_link:
            use.paths.link(place, source.text, use.scope.cwd)
        elif content is not None:
            use.write(place, content)
