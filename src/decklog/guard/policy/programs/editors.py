"""Judging of editors by their scripts: what sed reads, writes and runs, and what ed and vim are told to do."""

import re
from collections.abc import Iterator

from decklog.guard.policy.programs.use import Judge, Use, script_texts
from decklog.guard.policy.shell.words import UNKNOWN, Word, decode_ansi

_PLAIN = set("dDgGhHlnNpPqQxz=F")
_LABELS = set(":btTv")
_TEXTS = set("aic")
_FILES = {"r": "read", "R": "read", "w": "write", "W": "write"}
_ADDRESS = re.compile(r"(?:\d+(?:~\d+)?|\$|\+\d+|~\d+)")
_FLAGS = re.compile(r"[gpiImMe0-9]*")
_LONGEST = 8_000
_SILENT = {"-es", "-Es", "-s", "-e", "-E", "--headless"}
_TAKES_TEXT = {"a", "i", "c"}
_MOST_EDITS = 200


def check_sed(judge: Judge, use: Use) -> None:
    """Judge sed: the files it edits or reads, and scripts that run commands, read or write files."""
    scripts = [word for option, word in use.arguments.values if option in ("-e", "--expression")]
    in_place = use.arguments.has(("-i", "--in-place"))
    files = [word for word in use.arguments.operands if word.text or not in_place]
    if not scripts and not use.arguments.has(("-f", "--file")):
        scripts, files = files[:1], files[1:]
    for word in files:
        judge.path("write" if in_place else "read", word, use.scope, use.call.text)
    scripts += script_texts(judge, use, "-f", "--file")
    if scripts:
        edited = [word.text for word in files if in_place and judge.paths.is_run_by_tools(word.text)]
        _check_script(judge, use, "\n".join(word.text for word in scripts), edited)


def _check_script(judge: Judge, use: Use, script: str, edited: list[str]) -> None:
    """Judge what the commands of a script do outside of the text, and what they put into a file that a build tool runs."""
    if len(script) > _LONGEST:
        judge.report("too-complex", use.call.text)
    # What is not known is mostly a word to search for; it could still end the command it stands in.
    script = script[:_LONGEST].replace(UNKNOWN, "x")
    for role, text in _effects(script):
        match role:
            case "run":
                judge.report("option-runs-program", use.call.text)
                judge.run_text("shell", Word(text), use.scope, use.call)
            case "text":
                # A recipe is indented, and sed may leave that to a backslash.
                plain = decode_ansi(text).lstrip("\\ \t\n")
                for path in edited:
                    judge.written(path, Word("\t" + plain), use.scope, use.call)
                    judge.written(path, Word("\t" + plain.removeprefix("t")), use.scope, use.call)
            case "unknown":
                judge.report("not-understood", use.call.text)
            case _:
                judge.path(role, Word(text), use.scope, use.call.text)


def _effects(script: str) -> Iterator[tuple[str, str]]:
    """Give what a script reads, writes and runs; `unknown` where it can't be read as sed."""
    at = 0
    while at < len(script):
        at = _past_addresses(script, at)
        if at >= len(script):
            return
        command, at = script[at], at + 1
        line_end = script.find("\n", at)
        line_end = len(script) if line_end < 0 else line_end
        if command in _TEXTS:
            # A backslash at the end of a line takes the next one in.
            while script[line_end - 1] == "\\" and line_end < len(script):
                following = script.find("\n", line_end + 1)
                line_end = len(script) if following < 0 else following
            yield "text", script[at:line_end]
            at = line_end
        elif command == "#":
            at = line_end
        elif command in _LABELS:
            found = re.compile(r"[^;\n}]*").match(script, at)
            at = found.end() if found else at
        elif command in _FILES or command == "e":
            yield _FILES.get(command, "run"), script[at:line_end].strip()
            at = line_end
        elif command in "sy":
            end, effects = _substitution(script, at, line_end)
            yield from effects
            at = end
        elif command not in _PLAIN and command not in "{}":
            yield "unknown", script
            return
        else:
            at = _past_number(script, at)


def _past_number(script: str, at: int) -> int:
    """Pass the number that some commands take."""
    found = re.compile(r"[ \t]*\d*").match(script, at)
    return found.end() if found else at


def _past_addresses(script: str, at: int) -> int:
    """Pass white space, separators and the lines that a command is bound to."""
    while at < len(script):
        found = _ADDRESS.match(script, at)
        if found and found.end() > at:
            at = found.end()
        elif script[at] in " \t\n;,!IM" and not script[at].isalpha():
            at += 1
        elif script[at] == "/" or (script[at] == "\\" and at + 1 < len(script)):
            start = at if script[at] == "/" else at + 1
            at = _closing(script, start + 1, script[start])
            while at < len(script) and script[at] in "IM":
                at += 1
        else:
            return at
    return at


def _closing(script: str, at: int, mark: str) -> int:
    """Give the place behind the next mark that is neither escaped nor in brackets."""
    in_brackets = False
    while at < len(script):
        char = script[at]
        if char == "\\":
            at += 1
        elif char == "[" and not in_brackets:
            in_brackets = True
            # A bracket right behind the opening one stands for itself.
            at += 1 if script[at + 1 : at + 2] == "]" or script[at + 1 : at + 3] == "^]" else 0
        elif char == "]":
            in_brackets = False
        elif char == mark and not in_brackets:
            return at + 1
        at += 1
    return len(script)


def _substitution(script: str, at: int, line_end: int) -> tuple[int, list[tuple[str, str]]]:
    """Read `s` or `y` and give where it ends, with what its flags write and run."""
    if at >= len(script):
        return at, [("unknown", script)]
    mark, command = script[at], script[at - 1]
    middle = _closing(script, at + 1, mark)
    end = _closing(script, middle, mark)
    if command == "y":
        return end, []
    found = _FLAGS.match(script, end)
    flags = found[0] if found else ""
    effects = [("text", script[middle : end - 1].replace(f"\\{mark}", mark))]
    effects += [("run", script[middle : end + len(flags)])] if "e" in flags else []
    end += len(flags)
    if script[end : end + 1] == "w":
        effects.append(("write", script[end + 1 : line_end].strip()))
        end = line_end
    return end, effects


def check_editor(judge: Judge, use: Use) -> None:
    """Ask about an editor that waits for a person, or is told more than to change the text."""
    commands = _edit_commands(use)
    if commands is None or len(commands) > _MOST_EDITS:
        judge.report("interactive-editor", use.call.text)
    elif not all(judge.policy.patterns["edit_command"].fullmatch(command) for command in commands):
        judge.report("inline-code", use.call.text)


def _edit_commands(use: Use) -> list[str] | None:
    """Give the commands of an editor; None where it reads them from somebody or from somewhere unknown."""
    given = [word.text for option, word in use.arguments.values if option in ("-c", "--cmd")]
    if use.name == "ed" or not given:
        stdin = use.call.stdin
        is_silent = use.name in ("ed", "ex") or any(word.text in _SILENT for word in use.call.argv)
        if stdin is None or UNKNOWN in stdin.text or not is_silent:
            return None
        given += _without_text(stdin.text)
    elif not any(word.text in _SILENT for word in use.call.argv):
        return None
    return [part for command in given for part in command.split("|") if part.strip()]


def _without_text(script: str) -> list[str]:
    """Give the lines of a script that are commands, and not text that is put in up to a lone dot."""
    lines, within = [], False
    for line in script.split("\n"):
        if within:
            within = line != "."
        elif line.strip(" 0123456789,$.%") in _TAKES_TEXT:
            within = True
        elif line.strip():
            lines.append(line)
    return lines
