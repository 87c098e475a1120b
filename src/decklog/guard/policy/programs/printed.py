"""What a command prints, as far as that can be told without running it."""

import base64
import binascii
import posixpath
from collections.abc import Callable

from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.shell.found_files import found_by
from decklog.guard.policy.shell.words import NO_TAINT, UNKNOWN, Word, decode_ansi

_DECODE = ("-d", "-D", "--decode", "-r", "-i")
# Programs that pass on as much as they get.
_PASSING = frozenset(
    {"cat", "tr", "base64", "tee", "pv", "gzip", "sed", "rev", "xxd", "od", "nl", "bzip2", "xz", "zstd", "openssl", "awk"}
)
_NAMES_ALONE = ("s/=.*//", "s/=.*$//", "s|=.*||", "s,=.*,,", "s#=.*##")
_FIRST_FIELD = ("{print $1}", "{ print $1 }", "{print$1}")
# What stands above a directory that is not written by its own name.
_ABOVE = {"~": "/home", ".": "..", "..": "../.."}
_LISTS = (
    "-l",
    "--files-with-matches",
    "--files",
    "-L",
    "--files-without-match",
    "--name-only",
    "--name-status",
)


def output_of(judge: Judge, use: Use) -> Word:
    """Tell what a command prints: its text where known, and always what taints it."""
    if use.printed is not None:
        return use.printed
    known = _KNOWN.get(use.name)
    if known is not None:
        word = known(judge, use)
        if word is not None:
            return word
    taint = use.stdin_taint if use.name in _PASSING else use.stdin_taint - {"endless"}
    match use.program.output:
        case "network" | "decoded" | "environment" as kind:
            taint |= {kind}
        case "decoded?" if use.arguments.has(_DECODE):
            taint |= {"decoded"}
        case "names":
            return Word(f"./{UNKNOWN}", taint)
    if use.program.kind == "shell":
        taint |= {"shell"}
    return Word(UNKNOWN, taint)


def _echo(_judge: Judge, use: Use) -> Word:
    """Give what echo prints."""
    words = use.call.argv[1:]
    escapes = False
    while words and words[0].text in ("-e", "-n", "-E", "-ne", "-en"):
        escapes = escapes or "e" in words[0].text
        words = words[1:]
    text = " ".join(word.text for word in words)
    return Word(decode_ansi(text) if escapes else text, _taint(words))


def _printf(_judge: Judge, use: Use) -> Word:
    """Give what printf prints, its arguments put in for the directives one after the other."""
    words = use.call.argv[1:]
    if not words or words[0].text == "-v":
        return Word("")
    parts, rest = decode_ansi(words[0].text).split("%s"), [word.text for word in words[1:]]
    if "%" in "".join(parts):
        text = " ".join([*parts, *(decode_ansi(item) for item in rest)])
    elif len(parts) == 1:
        text = parts[0]
    else:
        fill = iter(rest)
        text = parts[0] + "".join(next(fill, "") + part for part in parts[1:])
        text = "\n".join([text, *fill])
    return Word(text, _taint(words))


def _taint(words: list[Word]) -> frozenset[str]:
    """Join what taints some words."""
    return NO_TAINT.union(*(word.taint for word in words))


def _cat(judge: Judge, use: Use) -> Word | None:
    """Give what cat passes on: its input, or files the script has written."""
    if not use.operands or use.operands[0].text == "-":
        return use.call.stdin or Word(UNKNOWN)
    if any(word.text in judge.policy.names["endless"] for word in use.operands):
        return Word(UNKNOWN, frozenset({"endless"}))
    if all(word.text == "/dev/null" for word in use.operands):
        return Word("")
    written = [use.scope.written(word.text) for word in use.operands]
    known = [word for word in written if word is not None]
    contents = [word for word in use.operands if word.content is not None]
    if contents:
        return Word("\n".join(word.content or "" for word in contents), _taint(contents))
    if not known:
        return None
    return Word("\n".join(word.text for word in known), _taint(known))


def _tee(judge: Judge, use: Use) -> Word:
    """Give what tee passes on, and remember the files it writes."""
    stdin = use.call.stdin or Word(UNKNOWN)
    if "endless" in stdin.taint and any(judge.paths.classify(word.text, use.scope.cwd) != "harmless" for word in use.operands):
        judge.report("fills-disk", use.call.text)
    for word in use.operands:
        use.scope.wrote(word.text, stdin, append=use.arguments.has(("-a", "--append")))
        judge.written(word.text, stdin, use.scope, use.call)
    return stdin


def _base64(_judge: Judge, use: Use) -> Word | None:
    """Give what a decoder prints where its input is known."""
    stdin = use.call.stdin
    if stdin is None or not stdin.is_known or not use.arguments.has(_DECODE):
        return None
    try:
        if use.name == "base64":
            decoded = base64.b64decode(stdin.text.strip(), validate=False)
        else:
            decoded = bytes.fromhex(stdin.text.strip())
    except (ValueError, binascii.Error):
        return None
    return Word(decoded.decode("utf-8", "replace").replace("\0", ""), stdin.taint | {"decoded"})


def _rev(_judge: Judge, use: Use) -> Word | None:
    """Give what rev prints."""
    stdin = use.call.stdin
    if stdin is None or use.operands:
        return None
    return Word("\n".join(line[::-1] for line in stdin.text.split("\n")), stdin.taint | {"decoded"})


def _pwd(_judge: Judge, use: Use) -> Word:
    """Give the directory the script stands in."""
    return Word(use.scope.cwd)


def _mktemp(_judge: Judge, _use: Use) -> Word:
    """Give a name for a new file in the scratch directory."""
    return Word(f"/tmp/tmp.{UNKNOWN}")


def _path_part(_judge: Judge, use: Use) -> Word | None:
    """Give what dirname, basename, realpath and readlink print for a known path."""
    operands = [word for word in use.call.argv[1:] if not word.text.startswith("-")]
    if not operands:
        return None
    # What stands last is the path: the words before it may be values of options.
    word = operands[-1] if use.name == "readlink" else use.operands[0] if use.operands else operands[0]
    if use.name == "dirname":
        return Word(_ABOVE.get(word.text) or posixpath.dirname(word.text) or ".", word.taint)
    if use.name == "basename":
        return Word(UNKNOWN if word.text in _ABOVE else posixpath.basename(word.text), word.taint)
    return word


def _which(_judge: Judge, use: Use) -> Word | None:
    """Give the program that which, type or `command -v` finds."""
    names = [word for word in use.arguments.operands if word.text]
    return Word(names[0].text, names[0].taint) if names else None


def _git(_judge: Judge, use: Use) -> Word | None:
    """Give the paths and branch names that git prints."""
    if use.arguments.has(("--show-toplevel", "--show-cdup")):
        return Word(".")
    if use.arguments.has(("--show-current", "--abbrev-ref")):
        return Word(use.scope.branch or UNKNOWN)
    if use.sub == "config" and any(word.text in ("-l", "--list", "list") for word in use.call.argv):
        return Word(UNKNOWN, frozenset({"settings"}))
    if use.sub == "ls-files" or use.arguments.has(_LISTS):
        return Word(f"./{UNKNOWN}")
    return None


def _find(judge: Judge, use: Use) -> Word:
    """Give what find prints: something below where it starts."""
    items = found_by(use.call.argv[1:], judge.policy.patterns["filters"])[1]
    return Word("\n".join(word.text for word in items), _taint(use.call.argv))


def _ls(_judge: Judge, use: Use) -> Word:
    """Give what ls prints: everything in the directory."""
    names = [word.text.rstrip("/") for word in use.operands if word.text]
    return Word(f"{names[0]}/*" if names and "*" not in names[0] else names[0] if names else "./*")


def _grep(judge: Judge, use: Use) -> Word | None:
    """Give what grep prints: names, or lines; of the environment only what is no secret by its name."""
    if use.arguments.has(_LISTS) and use.call.stdin is None:
        return Word(f"./{UNKNOWN}")
    pattern = use.operands[0].text if use.operands else UNKNOWN
    harmless = not judge.policy.patterns["secret_words"].search(pattern) and len(pattern.strip(".*^$")) > 1
    if "settings" in use.stdin_taint and judge.policy.patterns["secret_words"].search(pattern):
        judge.report("git-config-dangerous", use.call.text)
    if harmless and not use.arguments.has(("-v",)):
        return Word(UNKNOWN, use.stdin_taint - {"environment"})
    return None


def _environment(judge: Judge, use: Use) -> Word | None:
    """Give what env and printenv print: all of it, or one variable."""
    operands = [word for word in use.arguments.operands if use.name == "printenv" or "=" not in word.text]
    if not operands:
        return Word(UNKNOWN, frozenset({"environment"}))
    if use.name == "printenv" and any(judge.policy.patterns["secret_names"].search(word.text) for word in operands):
        return Word(UNKNOWN, frozenset({"secret"}))
    return Word(UNKNOWN, use.stdin_taint)


def _variables(_judge: Judge, use: Use) -> Word:
    """Give what set, export and declare print: every variable if they are given none."""
    flags = set(use.arguments.flags)
    shows_all = not use.arguments.operands and (not flags or (use.name != "set" and flags <= {"-p", "-x"}))
    return Word(UNKNOWN, frozenset({"environment"})) if shows_all and not use.call.assigned else Word("")


def _nothing(_judge: Judge, _use: Use) -> Word:
    """Give what a command prints that does nothing."""
    return Word("")


def _yes(_judge: Judge, _use: Use) -> Word:
    """Give what yes prints: lines without end."""
    return Word(UNKNOWN, frozenset({"endless"}))


def _first_field(_judge: Judge, use: Use) -> Word | None:
    """Give what is left of `NAME=value` where only the names are cut out."""
    texts = [word.text for word in use.call.argv[1:]]
    given = " ".join(texts)
    if use.name == "cut":
        is_name = given in ("-d= -f1", "-d = -f 1", "-d= -f 1", "-d = -f1", "-f1 -d=", "-f 1 -d=", "-f1 -d =", "-f 1 -d =")
    elif use.name == "sed":
        is_name = any(text in _NAMES_ALONE for text in texts)
    else:
        is_name = given.startswith(("-F=", "-F =")) and texts[-1] in _FIRST_FIELD
    return Word(UNKNOWN, use.stdin_taint - {"environment", "endless"}) if is_name else None


def _count(_judge: Judge, _use: Use) -> Word:
    """Give what a counting program prints: numbers, whatever it read."""
    return Word(UNKNOWN)


_KNOWN: dict[str, Callable[[Judge, Use], Word | None]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "tee": _tee,
    "base64": _base64,
    "xxd": _base64,
    "rev": _rev,
    "pwd": _pwd,
    "mktemp": _mktemp,
    "dirname": _path_part,
    "basename": _path_part,
    "realpath": _path_part,
    "readlink": _path_part,
    "which": _which,
    "command": _which,
    "git": _git,
    "find": _find,
    "ls": _ls,
    "grep": _grep,
    "egrep": _grep,
    "fgrep": _grep,
    "rg": _grep,
    "ag": _grep,
    "env": _environment,
    "printenv": _environment,
    "set": _variables,
    "export": _variables,
    "declare": _variables,
    "typeset": _variables,
    ":": _nothing,
    "true": _nothing,
    "yes": _yes,
    "cut": _first_field,
    "sed": _first_field,
    "awk": _first_field,
    "gawk": _first_field,
    "wc": _count,
    "test": _count,
    "[": _count,
}
