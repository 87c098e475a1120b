"""Judging of Decklog's own command: what only the manager may do is refused, and its files are judged like any others."""

from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.shell.words import Word


def check_decklog(judge: Judge, use: Use) -> None:
    """Refuse a command that only the manager may use, however its words are joined."""
    words = [word.text.replace("_", "-") for word in use.arguments.operands]
    commands = judge.policy.names["manager_commands"]
    if any(" ".join(words[:length]) in commands for length in range(1, len(words) + 1)):
        judge.report("decklog-manager-verb", use.call.text)
    _check_files(judge, use, words[0] if words else "")


def _check_files(judge: Judge, use: Use, command: str) -> None:
    """Judge the files that a command writes or takes in, and those given as `@FILE`."""
    for role, listed in (("write", "decklog_writes"), ("read", "decklog_reads")):
        if command in judge.policy.names[listed]:
            for word in use.arguments.operands[1:]:
                judge.path(role, word, use.scope, use.call.text)
    for word in [*use.arguments.operands, *(word for _, word in use.arguments.values)]:
        if word.text.startswith("@"):
            judge.path("read", Word(word.text[1:], word.taint), use.scope, use.call.text)
    log = use.arguments.value("--db")
    if log is not None and "://" not in log.text:
        judge.path("write", log, use.scope, use.call.text)
