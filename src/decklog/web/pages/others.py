"""The pages Compare, Memory, Workflow, Trust, Review and System."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

import decklog
from decklog import WorkflowDrawing
from decklog.core.errors import Denied, TimedOut
from decklog.transfer.doctor import find_problems
from decklog.web.pages.run_parts import build_moment
from decklog.web.site import QUERY_SECONDS, PageView, SiteRequest, command

# Compare


MOST_SHOWN, _MOST_NAMED = 500, 200
_FIGURES = {
    "entries": "entries",
    "done": "tasks done",
    "failed_attempts": "attempts failed",
    "calls": "calls",
    "cost": "spent",
    "minutes": "minutes",
}


def compare(request: SiteRequest) -> PageView:
    """Load two moments, each given as RUN or RUN:ENTRY, and their differences."""
    a, b = request.word("a"), request.word("b")
    compared, is_stopped = None, False
    try:
        with request.log.db.within(QUERY_SECONDS):
            compared = request.log.overview.compare(a, b) if a and b else None
    except TimedOut:
        is_stopped = True
    both = [_side(run_view, text) for run_view, text in zip(compared.sides, (a, b), strict=True)] if compared else None
    found = (compared.differences or []) if compared else []
    tables: dict[str, list[dict[str, Any]]] = {}
    for one in found[:MOST_SHOWN]:
        tables.setdefault(one["table"], []).append(one)
    shown: dict[str, Any] = {
        "a": a,
        "b": b,
        "both": both,
        "tables": tables,
        "left_out": max(0, len(found) - MOST_SHOWN),
        "is_long": is_stopped or (compared is not None and compared.differences is None),
    }
    shown |= {"figures": _FIGURES, "parting": _parting(both), "names": _names_of_changes(request, tables)}
    data = {"sides": [one["head"] for one in both or ()], "differences": found[:MOST_SHOWN]}
    decisions = compared.decisions if compared else None
    return PageView("compare.html", "Compare", command("runs", "diff", a or "A", b or "B"), data, shown, None, "more", decisions)


def _names_of_changes(request: SiteRequest, tables: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Return the titles of the first tasks and the goals of the runs that differ."""
    run_ids, task_ids = ([one["record_id"] for one in tables.get(table, [])][:_MOST_NAMED] for table in ("runs", "tasks"))
    return request.log.overview.names(run_ids=run_ids, task_ids=task_ids)


def _side(run_view: Any, text: str | None) -> dict[str, Any]:
    head, totals = build_moment(run_view), run_view.totals
    took = ((head.ended_at or head.moment) - head.started_at).total_seconds() / 60
    figures = {
        "entries": head.seq,
        "done": head.tasks["done"],
        "failed_attempts": totals["failed_attempts"],
        "calls": head.calls,
        "cost": head.cost,
        "minutes": round(took),
    }
    return {"head": head, "figures": figures, "said": text}


def _parting(both: list[dict[str, Any]] | None) -> str | None:
    """Describe how one of two runs was forked from the other; None if it was not."""
    heads = [one["head"] for one in both or ()]
    for one, other in (heads, heads[::-1]) if len(heads) == 2 else ():
        if other.parent == one.id:
            parted = f", from entry {other.parent_seq:,} on" if other.parent_seq else ""
            return (
                f"“{other.goal}” ({other.id}) is a fork of “{one.goal}” ({one.id}){parted}. Its records are copies with new ids."
            )
    return None


# Memory


PAGE, HITS = 50, 20


def memory(request: SiteRequest) -> PageView:
    """Load the lessons that a search would find, one lesson with its evidence, or the newest of a topic."""
    query, topic, lesson_id = request.word("q"), request.word("topic"), request.word("lesson")
    log = request.log
    base: dict[str, Any] = {
        "query": query,
        "topic": topic,
        "hits": None,
        "lesson": None,
        "lessons": [],
        "evidence": [],
        "health": None,
    }
    if lesson_id:
        lesson = log.memory.get(lesson_id)
        evidence = log.memory.evidence(lesson_id, limit=PAGE)
        names = log.overview.names(run_ids=list({one.run_id for one in evidence if one.run_id}))
        base |= {"lesson": lesson, "evidence": evidence, "names": names}
        return _memory_view("Lesson", command("memory", "show", lesson_id), lesson, base, None)
    if query:
        hits = log.memory.peek(query[:400], topic=topic, limit=HITS)
        return _memory_view("Memory", command("memory", "peek", query), hits, base | {"hits": hits}, None)
    lessons = log.memory.find(topic=topic, limit=PAGE, after=request.word("after"))
    # Topics with the most lessons come first.
    base |= {"lessons": lessons, "topics": sorted(log.memory.topics(), key=lambda one: -one["lessons"])}
    if request.word("health"):
        base["health"] = log.memory.health()
    return _memory_view("Memory", command("memory", "find", *(("--topic", topic) if topic else ())), lessons, base, lessons.next)


def _memory_view(title: str, shell_line: str, data: Any, shown: dict[str, Any], following: str | None) -> PageView:
    given = {name: shown[name] for name in ("topic",) if shown[name]}
    shown = {"topics": [], **shown, "older": f"/memory?{urlencode({**given, 'after': following})}" if following else None}
    return PageView("memory.html", title, shell_line, data, shown, following, "memory")


# Workflow


# Counts of each agent: label, and symbol in the picture.
COUNTED = {
    "to_do": ("pending", "○"),
    "working": ("running", "▶"),
    "blocked_or_paused": ("blocked or paused", "‖"),
    "failed": ("failed", "⊗"),
}
_FIELDS = (*COUNTED, "groups", "failed_groups")
_PERSON = "a person"
# Counts stop at this number.
_MOST_COUNTED = 1000


def workflow_page(request: SiteRequest) -> PageView:
    """Load the active workflow, and the work at each of its roles."""
    workflow = request.log.workflow
    steps, versions = workflow.transitions(), workflow.versions(limit=20)
    by_agent: dict[str, list[object]] = {}
    for step in steps:
        by_agent.setdefault(step.agent, []).append(step)
    decisions = request.log.overview.decisions()
    stations = stations_of(list(by_agent), request.log.overview.stations())
    shown: dict[str, Any] = {"versions": versions, "rules": workflow.rules(), "counted_as": COUNTED}
    shown |= {"stations": stations, "most": _MOST_COUNTED, "idle": [one["who"] for one in stations if not one["has_any"]]}
    shown["has_work"] = any(one["has_any"] for one in stations)
    shown |= _roles(by_agent, stations, is_all=request.word("roles") == "all")
    shown["picture"] = sha256(repr(notes_of(stations, decisions)).encode()).hexdigest()[:12]
    data = {"transitions": steps, "versions": versions, "stations": stations}
    return PageView("workflow.html", "Workflow", "decklog overview stations", data, shown, place="more", decisions=decisions)


def _roles(by_agent: dict[str, list[object]], stations: Sequence[Mapping[str, Any]], *, is_all: bool) -> dict[str, Any]:
    """Select the roles whose steps are shown: those with work, or all if requested or if none has work."""
    used = {one["who"] for one in stations if one["has_any"] and one["is_known"]}
    shown = {agent: steps for agent, steps in by_agent.items() if is_all or not used or agent in used}
    return {"by_agent": shown, "is_all": is_all, "unused": len(by_agent) - len(shown)}


def stations_of(agents: list[str], found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sum up the work at each role of the workflow, followed by agents that are not part of it."""
    known = {agent: {"who": agent, "is_known": True, **dict.fromkeys(_FIELDS, 0)} for agent in agents}
    others: dict[str | None, dict[str, Any]] = {}
    for one in found:
        who = one["who"]
        # Agents of one role differ by a number: developer-2 is a developer.
        agent = "" if who is None else re.sub(r"[-_ ]?\d+$", "", who.lower())
        whole = known.get(agent) or others.setdefault(who, {"who": who, "is_known": False, **dict.fromkeys(_FIELDS, 0)})
        for name in _FIELDS:
            whole[name] += one[name]
    return [{**one, "has_any": any(one[name] for name in _FIELDS)} for one in (*known.values(), *others.values())]


def notes_of(stations: list[dict[str, Any]], decisions: int) -> dict[str, str]:
    """Format the work at each role for the picture: a symbol and a number for each kind."""
    notes = {}
    for one in stations:
        signs = [f"{sign} {_many(one[name])}" for name, (_, sign) in COUNTED.items() if one[name]]
        if signs and one["is_known"]:
            notes[one["who"]] = "  ".join(signs)
    return notes | ({_PERSON: f"▲ {decisions}"} if decisions else {})


def _many(count: int) -> str:
    return f"{count}+" if count >= _MOST_COUNTED else str(count)


def workflow_picture(request: SiteRequest) -> str:
    """Draw the workflow with its counts as SVG."""
    workflow, overview = request.log.workflow, request.log.overview
    agents = dict.fromkeys(step.agent for step in workflow.transitions())
    notes = notes_of(stations_of(list(agents), overview.stations()), overview.decisions())
    return workflow.draw(format=WorkflowDrawing.SVG, notes=notes)


# Trust


PAGE, LEVELS = 50, range(6)
# Permissions of agents in words, with their policy actions. All actions of a line are permitted together.
PERMISSIONS: dict[str, tuple[str, ...]] = {
    "Read files, history and processes": (
        *("read_file", "list_files", "glob", "grep", "find_symbol", "search_code", "semantic_search", "generate_diff"),
        *("git_diff", "git_log", "git_show", "git_status", "get_process_logs", "list_processes"),
    ),
    "Look things up on GitHub and the web": ("query_github", "query_web"),
    "Run tests, and stop what it started": ("run_tests", "stop_process"),
    "Answer questions": ("answer_question",),
    "Draft patches and proposals outside of the repository": ("write_patch", "write_proposal", "write_scratch"),
    "Change, move and delete files": ("edit_file", "write_file", "move_file", "delete_file"),
    "Run commands": ("run_cli", "run_cli_command"),
    "Commit, and push its own branches": ("git_add", "git_branch", "git_commit", "git_push"),
    "Open issues and draft pull requests, and comment": ("open_issue", "open_pr", "comment_issue", "comment_pr"),
    "Delete a test, or force-push": ("delete_test", "force_push"),
    "Change the public API, or the version": ("change_public_api", "bump_version"),
    "Edit protected paths and release workflows": ("edit_forbidden_path", "edit_release_workflow"),
    "Fix CI unasked, wake on events, own a task queue": ("fix_ci", "wake_on_event", "own_task_queue"),
    "Merge the kinds of fixes that the owner listed": ("auto_merge",),
    "Edit its own source while dev mode is on": ("edit_own_source",),
    "Open pull requests into the main branch": ("open_main_pr",),
    "Merge pull requests, and release": ("merge_pr", "release"),
    "Push or merge into main without a pull request": ("push_main", "merge_into_main"),
}
YES, ASKS, NO = "yes", "asks", "no"


@dataclass(frozen=True)
class PermissionRow:
    """A row of the permission matrix: for each level `yes`, `asks` (needs an approval each time) or `no`."""

    words: str
    actions: tuple[str, ...]
    cells: tuple[str, ...]


def matrix(log: Any) -> tuple[list[Any], list[PermissionRow]]:
    """Build the matrix of autonomy levels and permissions from the levels' data."""
    levels = [log.trust.explain(level) for level in LEVELS]

    def cell(action: str, level: Any) -> str:
        if action not in level["may"]:
            return NO
        return ASKS if action in level["needs_approval"] else YES

    rows = [
        PermissionRow(words, actions, tuple(cell(actions[0], level) for level in levels))
        for words, actions in PERMISSIONS.items()
    ]
    return levels, rows


def trust(request: SiteRequest) -> PageView:
    """Load the trust contract, its history and the latest signatures."""
    log = request.log
    contract, history, proofs = log.trust.show(), log.trust.history(limit=PAGE), log.proofs.find(limit=PAGE)
    levels, rows = matrix(log)
    shown = {"contract": contract, "history": history[::-1], "proofs": proofs, "levels": levels, "rows": rows}
    data = {"contract": contract, "history": history, "proofs": proofs, "permissions": [asdict(row) for row in rows]}
    return PageView("trust.html", "Trust", "decklog trust show", data, shown, place="more")


# A review


# The most severe first; an unknown severity is last.
SEVERITIES = ("blocking", "significant", "question", "minor", "info")
_PASS: dict[str, Any] = {"name": "", "status": "", "why": "", "score": None, "by": [], "findings": []}
_FINDING: dict[str, Any] = {"pass": None, "severity": "", "kind": "", "text": "", "file": None, "line": None, "remedy": ""}


def review_page(request: SiteRequest) -> PageView:
    """Load a review with all findings of its stages."""
    review = request.log.reviews.get(request.path["review_id"])
    passes = [_all_fields(_PASS, one) for one in review.passes]
    findings = sorted((_all_fields(_FINDING, one) for one in review.findings), key=lambda one: _rank(one["severity"]))
    names = request.log.overview.names(run_ids=[review.run_id], task_ids=[review.task_id] if review.task_id else [])
    shown = {"review": review, "passes": passes, "findings": findings, "names": names}
    shell_line = command("reviews", "show", review.id)
    return PageView("review.html", f"Review: {review.verdict.value}", shell_line, review, shown, place="runs")


def _all_fields(fields: dict[str, Any], kept: object) -> dict[str, Any]:
    """Return a stored item with all fields. An item that is no object becomes a text."""
    if not isinstance(kept, dict):
        return {**fields, "text": str(kept)}
    return {name: kept.get(name, default) for name, default in fields.items()}


def _rank(severity: object) -> int:
    return SEVERITIES.index(severity) if isinstance(severity, str) and severity in SEVERITIES else len(SEVERITIES)


# System


# Database facts that are shown; its location is not.
_SHOWN_FACTS = ("engine", "engine_version", "schema", "bytes", "wal_bytes", "journal_mode", "synchronous", "mode", "read_only")
_MOST_SESSIONS = 50


def system(request: SiteRequest) -> PageView:
    """Load the facts of the log and this server; with `look`, also the findings of the health check."""
    facts, site = request.log.db.facts(), request.site
    shown_facts = {name: value for name, value in facts.items() if name in _SHOWN_FACTS}
    shown_facts["not_indexed"] = request.log.db.read(request.log.journal.not_indexed)
    findings: list[dict[str, Any]] | None = None
    if request.word("look"):
        findings = [dict(one) for one in find_problems(request.log, facts, deep=False)]
    sessions, verifying = _sessions(request), site.verifying.status
    shown: dict[str, Any] = {
        "facts": shown_facts,
        "version": decklog.__version__,
        "findings": findings,
        "streams": site.feed.listener_count,
    }
    shown |= {"sessions": sessions[:_MOST_SESSIONS], "more_sessions": len(sessions[_MOST_SESSIONS:]), "verifying": verifying}
    shown |= {"tokens": _tokens(request, sessions), "token": request.session.form_token("logout", "")}
    shown |= {"verify_token": request.session.form_token(VERIFY, "")}
    data = {"version": decklog.__version__, **shown_facts, "findings": findings}
    data |= {"verification": verifying.as_dict(), "sessions": sessions}
    return PageView("system.html", "System", "decklog doctor", data, shown, place="more")


def _sessions(request: SiteRequest) -> list[dict[str, Any]]:
    """List the sessions: the reader's own first, then the most recently seen."""
    known = [{**one.as_dict(), "is_mine": one is request.session} for one in request.site.sessions.open()]
    return sorted(known, key=lambda one: not one["is_mine"])


def _tokens(request: SiteRequest, sessions: list[dict[str, Any]]) -> dict[str, str]:
    return {one["name"]: request.session.form_token(END, one["name"]) for one in sessions}


END, VERIFY = "sessions.end", "journal.verify"
# What the form of a verification may ask for instead of continuing.
ANEW, STOP = "anew", "stop"


def end_session(request: SiteRequest) -> str:
    """End the session that a form names. Ending one's own session leads to the login."""
    name = request.path["name"]
    _check_form(request, END, name)
    request.site.sessions.end(name)
    # Its stream ends now, and open lists of sessions reload.
    request.site.feed.renew()
    return "/system"


def verify_log(request: SiteRequest) -> str:
    """Start a verification from the last position or from the beginning, or stop the one that runs."""
    _check_form(request, VERIFY, "")
    how, verifying = request.form.get("how"), request.site.verifying
    if how == STOP:
        verifying.stop()
    else:
        verifying.begin(request.log, request.site.feed.renew, from_start=how == ANEW)
    request.site.feed.renew()
    return "/system"


def _check_form(request: SiteRequest, verb: str, record_id: str) -> None:
    if not request.session.is_form_token(request.form.get("token", ""), verb, record_id):
        raise Denied("the form belongs to another session", hint="Reload the page and try again.")
