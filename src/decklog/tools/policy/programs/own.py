"""Judging of Decklog's own command: what only the manager may do is refused."""

from decklog.tools.policy.programs.use import Judge, Use


def check_decklog(judge: Judge, use: Use) -> None:
    """Refuse a command that only the manager may use, however its words are joined."""
    words = [word.text.replace("_", "-") for word in use.arguments.operands]
    commands = judge.policy.names["manager_commands"]
    if any(" ".join(words[:length]) in commands for length in range(1, len(words) + 1)):
        judge.report("decklog-manager-verb", use.call.text)
