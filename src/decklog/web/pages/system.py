"""System: verification of the log, database facts, sessions, and a health check on demand."""

from typing import Any

import decklog
from decklog.transfer.doctor import check_up
from decklog.web.site import PageView, SiteRequest
from decklog.web.tending import END, VERIFY

# Database facts that are shown; its location is not.
_TOLD = ("engine", "engine_version", "schema", "bytes", "wal_bytes", "journal_mode", "synchronous", "mode", "read_only")
_MOST_SESSIONS = 50


def read(asked: SiteRequest) -> PageView:
    """Load the facts of the log and this server; with `look`, also the findings of the health check."""
    facts, site = asked.log.db.facts(), asked.site
    told = {name: value for name, value in facts.items() if name in _TOLD}
    told["not_indexed"] = asked.log.db.read(asked.log.journal.not_indexed)
    findings: list[dict[str, Any]] | None = None
    if asked.word("look"):
        findings = [dict(one) for one in check_up(asked.log, facts, deep=False)]
    sessions, verifying = _sessions(asked), site.verifying.standing
    shown: dict[str, Any] = {"facts": told, "version": decklog.__version__, "findings": findings, "streams": site.feed.count}
    shown |= {"sessions": sessions[:_MOST_SESSIONS], "more_sessions": len(sessions[_MOST_SESSIONS:]), "verifying": verifying}
    shown |= {"tokens": _tokens(asked, sessions), "token": asked.session.form_token("logout", "")}
    shown |= {"verify_token": asked.session.form_token(VERIFY, "")}
    data = {"version": decklog.__version__, **told, "findings": findings}
    data |= {"verification": verifying.as_dict(), "sessions": sessions}
    return PageView("system.html", "System", "decklog doctor", data, shown, place="more")


def _sessions(asked: SiteRequest) -> list[dict[str, Any]]:
    """List the sessions: the reader's own first, then the most recently seen."""
    known = [{**one.as_dict(), "is_mine": one is asked.session} for one in asked.site.sessions.open()]
    return sorted(known, key=lambda one: not one["is_mine"])


def _tokens(asked: SiteRequest, sessions: list[dict[str, Any]]) -> dict[str, str]:
    return {one["name"]: asked.session.form_token(END, one["name"]) for one in sessions}
