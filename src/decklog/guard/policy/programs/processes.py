"""Judging of programs that stop processes."""

import re

from decklog.guard.policy.programs.use import Judge, Use

_KILL = re.compile(r"-+(9|KILL|SIGKILL|s)$", re.IGNORECASE)
_ANYTHING = re.compile(r"[.*^$?+\"']*")


def check_kill(judge: Judge, use: Use) -> None:
    """Judge which processes are stopped."""
    if use.name == "kill":
        _check_ids(judge, use)
    else:
        _check_names(judge, use)


def _check_ids(judge: Judge, use: Use) -> None:
    """Judge process ids: own jobs may be stopped, everything never."""
    texts = [word.text for word in use.call.argv[1:]]
    if texts[:1] in (["-l"], ["-L"], ["-0"]):
        return
    if texts[:1] in (["-s"], ["-n"], ["--signal"]):
        texts = texts[2:]
    elif len(texts) > 1 and texts[0].startswith("-") and texts[0] != "--":
        texts = texts[1:]
    for text in texts:
        if text in ("-1", "1"):
            judge.report("kill-everything", use.call.text)
        elif text != "--" and not text.startswith("%"):
            judge.report("kill-process", use.call.text)


def _check_names(judge: Judge, use: Use) -> None:
    """Judge names and patterns: those that match anything, and killing by force, are refused."""
    texts = [word.text for word in use.call.argv[1:]]
    matches_anything = any(_ANYTHING.fullmatch(word.text) for word in use.operands)
    by_force = use.name == "killall" and any(_KILL.match(text) for text in texts)
    by_user = use.arguments.has(("-u", "-U", "--user", "--uid")) and not use.operands
    if matches_anything or by_force or by_user:
        judge.report("kill-everything", use.call.text)
