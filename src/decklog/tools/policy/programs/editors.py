"""Judging of line editors that are given their commands: those that only change the text they edit may run."""

from decklog.tools.policy.programs.use import Judge, Use
from decklog.tools.policy.shell.words import UNKNOWN

_SILENT = {"-es", "-Es", "-s", "-e", "-E", "--headless"}
_TEXT = {"a", "i", "c"}
_MOST_COMMANDS = 200


def check_editor(judge: Judge, use: Use) -> None:
    """Ask about an editor that waits for a person, or is told more than to change the text."""
    commands = _commands(use)
    if commands is None or len(commands) > _MOST_COMMANDS:
        judge.report("interactive-editor", use.call.text)
    elif not all(judge.policy.patterns["edit_command"].fullmatch(command) for command in commands):
        judge.report("inline-code", use.call.text)


def _commands(use: Use) -> list[str] | None:
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
        elif line.strip(" 0123456789,$.%") in _TEXT:
            within = True
        elif line.strip():
            lines.append(line)
    return lines
