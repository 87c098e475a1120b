"""Output and effects of a command, as far as they are known without running it."""

import posixpath
import re
from binascii import a2b_base64
from collections.abc import Callable
from typing import TYPE_CHECKING

from decklog.guard.policy.programs import find_results
from decklog.guard.policy.verdict import Publication
from decklog.guard.policy.words import UNKNOWN, Word, decode_ansi, join_taint

if TYPE_CHECKING:
    from decklog.guard.policy.engine import CommandCheck

_DECODE = ("-d", "-D", "--decode", "-r", "-i")
# Parents of directories that have no name in the path.
_PARENTS_OF = {"~": "/home", ".": "..", "..": "../.."}
_LISTS = ("-l", "--files-with-matches", "--files", "-L", "--files-without-match", "--name-only", "--name-status")


def command_output(command: "CommandCheck") -> Word:
    """Return what a command prints: its text where known, and its taint."""
    kind, text = command.program.get("output"), " ".join(word.text for word in command.call.argv[1:])
    for case in command.policy.outputs.get(command.name, ()):
        if re.search(case.get("if", ""), text):
            kind = case["output"]
            break
    word = _KINDS[kind](command) if kind in _KINDS else None
    if word is not None:
        return word
    taint = command.stdin_taint if command.name in command.policy.names["passing"] else command.stdin_taint - {"endless"}
    if kind in ("network", "decoded", "environment", "settings", "endless", "secret"):
        taint |= {kind}
    if kind == "decoder" and command.arguments.has(_DECODE):
        taint |= {"decoded"}
    if command.program.get("language") == "shell":
        taint |= {"shell"}
    return Word(UNKNOWN, taint)


def _echo_output(command: "CommandCheck") -> Word:
    """Return what echo prints."""
    words, escapes = command.call.argv[1:], False
    while words and words[0].text in ("-e", "-n", "-E", "-ne", "-en"):
        escapes = escapes or "e" in words[0].text
        words = words[1:]
    text = " ".join(word.text for word in words)
    return Word(decode_ansi(text) if escapes else text, join_taint(words))


def _printf_output(command: "CommandCheck") -> Word:
    """Return what printf prints, with its arguments in place of the directives."""
    words = command.call.argv[1:]
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


def _cat_output(command: "CommandCheck") -> Word | None:
    """Return what cat prints: its input, or files that the script has written."""
    if not command.operands or command.operands[0].text == "-":
        return command.call.stdin or Word(UNKNOWN)
    if any(word.text in command.policy.names["endless"] for word in command.operands):
        return Word(UNKNOWN, frozenset({"endless"}))
    if all(word.text == "/dev/null" for word in command.operands):
        return Word("")
    contents = [Word(word.content, word.taint) for word in command.operands if word.content is not None]
    contents = contents or [
        found for word in command.operands if (found := command.scope.find_written_content(word.text)) is not None
    ]
    return Word("\n".join(word.text for word in contents), join_taint(contents)) if contents else None


def _decoder_output(command: "CommandCheck") -> Word | None:
    """Return what a decoder prints where its input is known."""
    stdin = command.call.stdin
    if stdin is None or not stdin.is_known or not command.arguments.has(_DECODE):
        return None
    try:
        decoded = a2b_base64(stdin.text.strip()) if command.name == "base64" else bytes.fromhex(stdin.text.strip())
    except ValueError:
        return None
    return Word(decoded.decode("utf-8", "replace").replace("\0", ""), stdin.taint | {"decoded"})


def _rev_output(command: "CommandCheck") -> Word | None:
    stdin = command.call.stdin
    return Word("\n".join(line[::-1] for line in stdin.text.split("\n")), stdin.taint | {"decoded"}) if stdin else None


def _path_output(command: "CommandCheck") -> Word | None:
    """Return what dirname, basename and realpath print for a known path."""
    operands = [word for word in command.call.argv[1:] if not word.text.startswith("-")]
    if not operands:
        return None
    word = operands[-1]
    if command.name == "dirname":
        return Word(_PARENTS_OF.get(word.text) or posixpath.dirname(word.text) or ".", word.taint)
    if command.name == "basename":
        return Word(UNKNOWN if word.text in _PARENTS_OF else posixpath.basename(operands[0].text), word.taint)
    return word


def _find_output(command: "CommandCheck") -> Word:
    return Word("\n".join(word.text for word in find_results(command)), join_taint(command.call.argv))


def _ls_output(command: "CommandCheck") -> Word:
    """Return what ls prints: everything in the directory."""
    names = [word.text.rstrip("/") for word in command.operands if word.text]
    return Word(f"{names[0]}/*" if names and "*" not in names[0] else names[0] if names else "./*")


def _grep_output(command: "CommandCheck") -> Word | None:
    """Return what grep prints: file names or lines. A harmless pattern removes the environment's taint."""
    if command.arguments.has(_LISTS) and command.call.stdin is None:
        return Word(f"./{UNKNOWN}")
    pattern = command.operands[0].text if command.operands else UNKNOWN
    is_secret = command.policy.patterns("secret_words").search(pattern)
    if "settings" in command.stdin_taint and is_secret:
        command.check("settings-search", Word(pattern))
    if not is_secret and len(pattern.strip(".*^$")) > 1 and not command.arguments.has(("-v",)):
        return Word(UNKNOWN, command.stdin_taint - {"environment"})
    return None


def _env_output(command: "CommandCheck") -> Word | None:
    """Return what env and printenv print: all variables, or one."""
    operands = [word for word in command.arguments.operands if command.name == "printenv" or "=" not in word.text]
    if not operands:
        return Word(UNKNOWN, frozenset({"environment"}))
    is_secret = any(command.policy.patterns("secret_names").search(word.text) for word in operands)
    return Word(UNKNOWN, frozenset({"secret"}) if is_secret and command.name == "printenv" else command.stdin_taint)


def _set_output(command: "CommandCheck") -> Word:
    """Return what set, export and declare print: all variables if they have no arguments."""
    flags = set(command.arguments.flags)
    shows_all = not command.arguments.operands and (not flags or (command.name != "set" and flags <= {"-p", "-x"}))
    return Word(UNKNOWN, frozenset({"environment"})) if shows_all and not command.call.assigned else Word("")


_KINDS: dict[str, Callable[["CommandCheck"], Word | None]] = {
    "arguments": _echo_output,
    "format": _printf_output,
    "contents": _cat_output,
    "decoder": _decoder_output,
    "reversed": _rev_output,
    "path": _path_output,
    "found": _find_output,
    "directory": _ls_output,
    "matches": _grep_output,
    "variables": _set_output,
    "all-variables": _env_output,
    "stdin": lambda command: command.call.stdin or Word(UNKNOWN),
    "names": lambda command: Word(f"./{UNKNOWN}", command.stdin_taint - {"endless"}),
    "variable-names": lambda command: Word(UNKNOWN, command.stdin_taint - {"environment", "endless"}),
    "operand": lambda command: next(iter(command.arguments.operands), None),
    "cwd": lambda command: Word(command.scope.cwd),
    "root": lambda _use: Word("."),
    "branch": lambda command: Word(command.scope.branch or UNKNOWN),
    "scratch": lambda _use: Word(f"/tmp/tmp.{UNKNOWN}"),
    "nothing": lambda _use: Word(""),
    "unknown": lambda _use: Word(UNKNOWN),
}


# Effects of a command


def record_effects(command: "CommandCheck") -> None:
    """Record the files, links, branches and publications that a command creates."""
    entry, judgement = command.program, command.judgement
    if command.name in command.policy.names["compilers"] and command.operands:
        target = command.arguments.value("-o", "--output")
        if target is not None and all(_is_judged_source(command, word) for word in command.operands):
            command.scope.record_trusted_file(target.text)
    if "saves" in entry and ("*" in entry["saves"] or command.arguments.has(entry["saves"])):
        place = command.arguments.value("-P", "--directory-prefix", "--output-dir")
        for word in command.operands:
            name = word.text.rstrip("/").rsplit("/", 1)[-1]
            command.scope.record_write(f"{place.text}/{name}" if place else name, Word(UNKNOWN, frozenset({"network"})))
    if "links" in entry:
        _record_copies(command, is_link="*" in entry["links"] or command.arguments.has(entry["links"]))
    if "branch" in entry:
        new = command.arguments.value(*entry["branch"])
        if new is not None or (command.operands and "--" not in command.arguments.flags):
            command.scope.branch = (new or command.operands[0]).text
    judgement.moves_commits = judgement.moves_commits or command.sub.partition(" ")[0] in entry.get("moves_commits", ())
    if command.sub in entry.get("publishes", ()) and not command.arguments.has(entry.get("dry_run", ())):
        options = tuple((option, word.text) for option, word in command.arguments.values)
        folder = next((value for option, value in options if option == "-C"), ".") if command.name == "git" else "."
        cwd = command.paths.locate(folder, command.scope.cwd)
        operands, flags = tuple(word.text for word in command.operands), frozenset(command.arguments.flags)
        judgement.published.append(Publication(command.name, operands, flags, options, cwd, judgement.moves_commits))


def _is_judged_source(command: "CommandCheck", word: Word) -> bool:
    """Return whether a source file is in the repository, or was written by the script without risky calls."""
    if command.paths.classify(word.text, command.scope.cwd) in ("inside", "top"):
        return word.text != "-"
    written = command.scope.find_written_content(word.text) if command.scope.has_created(word.text) else None
    return written is not None and not command.policy.patterns("native_risk").search(written.text)


def _record_copies(command: "CommandCheck", *, is_link: bool) -> None:
    """Record the links that a command creates, or copies of files that the script has written."""
    folder = command.arguments.value("-t", "--target-directory")
    operands = command.operands if folder or len(command.operands) > 1 else [*command.operands, Word(".")]
    *sources, last = [*operands, folder] if folder else operands
    is_folder = folder is not None or len(sources) > 1 or last.text.endswith(("/", "."))
    for source in sources:
        place = posixpath.join(last.text, posixpath.basename(source.text)) if is_folder else last.text
        content = command.scope.find_written_content(source.text)
        if is_link:
            command.paths.link(place, source.text, command.scope.cwd)
        elif content is not None:
            command.write(place, content)
