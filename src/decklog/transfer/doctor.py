"""What ails a log beyond its settings: stuck leases, wrong sums, unreadable pages, broken chains, a lock that someone holds."""

import os
from datetime import timedelta
from typing import TYPE_CHECKING

from decklog.core.clock import to_text
from decklog.core.figures import counted
from decklog.db.sqlite.errors import is_full
from decklog.db.sqlite.holders import holders_of
from decklog.journal.journal import LOST_WRITES
from decklog.transfer.progress import Progress, silent

if TYPE_CHECKING:
    from typing import Any

    from decklog.log import Decklog

    Finding = dict[str, str]

_LONG_AGO = timedelta(hours=1)
# How long doctor shows that writes were lost.
_RECENT = timedelta(days=30)
_MOST_PAGES = 10
_PAGE_SECONDS = 2.5
_LARGE_WAL = 256 * 1024 * 1024


def check_up(log: "Decklog", facts: "dict[str, Any]", *, deep: bool = False, progress: Progress = silent) -> "list[Finding]":
    """List what is wrong, each with the command that mends it. `deep` also checks every page and walks every chain.

    Without it, checking pages ends after some seconds; `facts` get `unchecked_tables`.
    """
    findings = [*_room(facts), *_permissions(facts), *_wal(log, facts), *_unread(log), *_pages(log, facts, deep, progress)]
    if findings and findings[-1]["about"] == "page":
        return findings  # what can't be read can't be asked either
    findings += [*_standbys(facts), *_lost_writes(log)]
    return [*findings, *_stuck_leases(log), *_budgets(log), *(_chains(log, progress) if deep else [])]


def holders(log: "Decklog") -> "list[dict[str, object]]":
    """List the processes that write to a SQLite log at this moment, on systems with /proc/locks."""
    if log.db.engine != "sqlite":
        return []
    return [holder for holder in holders_of(f"{log.db.target}-lock") if holder["exclusive"]]


def _finding(about: str, what: str, mend: str) -> "Finding":
    return {"about": about, "what": what, "mend": mend}


def _permissions(facts: "dict[str, Any]") -> "list[Finding]":
    if facts["engine"] != "sqlite":
        return []
    path = str(facts["path"])
    found = [
        _finding("permissions", f"others can read {name} (mode {oct(os.stat(name).st_mode & 0o777)})", f"chmod 600 {name}")
        for name in (path, f"{path}-wal", f"{path}-lock")
        if os.path.exists(name) and os.stat(name).st_mode & 0o077
    ]
    folder = os.path.dirname(path)
    if os.stat(folder).st_mode & 0o002 and not os.stat(folder).st_mode & 0o1000:
        found.append(_finding("permissions", f"everyone may replace files in {folder}", f"chmod 700 {folder}"))
    return found


def _room(facts: "dict[str, Any]") -> "list[Finding]":
    if facts["engine"] != "sqlite" or facts["read_only"] or not is_full(facts["path"]):
        return []
    return [_finding("disk", f"the disk is full; {facts['path']} can be read and not written", "Free some space on that disk.")]


def _wal(log: "Decklog", facts: "dict[str, Any]") -> "list[Finding]":
    if facts["engine"] != "sqlite" or int(facts["wal_bytes"]) <= _LARGE_WAL:
        return []
    readers = [str(holder["pid"]) for holder in holders_of(f"{log.db.target}-shm")]
    who = f" (open in process {', '.join(readers)})" if readers else ""
    return [
        _finding(
            "wal", f"the WAL has {facts['wal_bytes']:,} bytes{who}", "End readers that have been open for long; it shrinks then."
        )
    ]


def _standbys(facts: "dict[str, Any]") -> "list[Finding]":
    if not facts.get("standbys") or facts["synchronous_standby_names"]:
        return []
    what = f"{counted(facts['standbys'], 'standby')} without synchronous_standby_names: a failover can lose acknowledged writes"
    return [_finding("standby", what, "alter system set synchronous_standby_names = 'ANY 1 (*)'; select pg_reload_conf();")]


def _lost_writes(log: "Decklog") -> "list[Finding]":
    since = log.clock.now() - _RECENT
    return [
        _finding("failover", f"{entry.at:%Y-%m-%d %H:%M} {entry.body}", f"decklog journal get @desk {entry.seq}")
        for entry in log.journal.find("@desk", subtype=LOST_WRITES, since=since)
    ]


def _unread(log: "Decklog") -> "list[Finding]":
    mend = f"decklog recover {log.db.target} (after a copy of the file and its -wal)"
    return [_finding("wal", what, mend) for found in log.db.check_wal() for what in found]


def _pages(log: "Decklog", facts: "dict[str, Any]", deep: bool, progress: Progress) -> "list[Finding]":
    from decklog.core.errors import Damaged

    try:
        wrong, facts["unchecked_tables"] = log.db.check_pages(_MOST_PAGES, None if deep else _PAGE_SECONDS, progress)
    except Damaged as problem:
        wrong = [problem.message]
    mend = f"decklog recover {log.db.target} (after a copy of the file), or decklog restore BACKUP"
    return [_finding("page", f"the file is damaged: {text.strip()}", mend) for text in wrong[:_MOST_PAGES]]


def _stuck_leases(log: "Decklog") -> "list[Finding]":
    sql = """
        select id, run_id, worker, leased_until
          from tasks
         where state = 'running'
           and leased_until < :long_ago
         order by leased_until
         limit 20
    """
    bound = {"long_ago": to_text(log.clock.steady() - _LONG_AGO)}
    _, rows = log.db.read(lambda: log.db.rows(sql, bound))
    return [
        _finding(
            "lease",
            f"task {task} is running for {worker}, whose lease ended {until}",
            f"decklog tasks claim {run} --worker NAME (a claim hands it on)",
        )
        for task, run, worker, until in rows
    ]


def _budgets(log: "Decklog") -> "list[Finding]":
    """Look for running sums that are not those of the charges: a budget would then stop too early or too late."""
    days: dict[str, list[str]] = {}
    for problem in log.budgets.check()["problems"]:
        days.setdefault(problem["budget_id"], []).append(problem["day"])
    return [
        _finding(
            "budget",
            f"budget {budget_id} counts something else than its charges on {', '.join(named[:3])}"
            + (f" and {len(named) - 3} more days" if len(named) > 3 else ""),
            "decklog budgets rebuild",
        )
        for budget_id, named in days.items()
    ]


def _chains(log: "Decklog", progress: Progress) -> "list[Finding]":
    from decklog.transfer.verified import verify

    found = []
    is_file = log.db.engine == "sqlite"
    mend = "decklog restore BACKUP; decklog recover FILE keeps what is whole" if is_file else "Restore the server's own backup."
    for problem in verify(log, progress=progress).problems:
        place = f"{problem.stream}:{problem.seq} " if problem.stream else ""
        found.append(_finding("chain", f"{place}{problem.what}", mend))
    return found
