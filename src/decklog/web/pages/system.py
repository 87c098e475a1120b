"""System: the engine and the file, who is logged in, and, when it is asked for, what ails the log."""

from typing import Any

import decklog
from decklog.transfer.doctor import check_up
from decklog.web.site import Asked, View

# What is told of a database; where it lies is not.
_TOLD = ("engine", "engine_version", "schema", "bytes", "wal_bytes", "journal_mode", "synchronous", "mode", "read_only")


def read(asked: Asked) -> View:
    """Read the facts of the log; with `look`, also what a doctor finds."""
    facts = asked.log.db.facts()
    told = {name: value for name, value in facts.items() if name in _TOLD}
    findings: list[dict[str, Any]] | None = None
    if asked.word("look"):
        findings = [dict(one) for one in check_up(asked.log, facts, deep=False)]
    shown = {"facts": told, "version": decklog.__version__, "findings": findings, "sessions": asked.site.sessions.count}
    shown |= {"streams": asked.site.feed.count, "token": asked.session.form_token("logout", "")}
    data = {"version": decklog.__version__, **told, "findings": findings}
    return View("system.html", "System", "decklog doctor", data, shown, place="more")
