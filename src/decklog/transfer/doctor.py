"""Find problems of a log: stuck leases, wrong sums, unreadable pages, broken chains, held locks. Also verify and measure it."""

import json
import os
import time
from contextlib import suppress
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Any

from decklog.core.clock import to_text
from decklog.core.display import counted
from decklog.core.errors import Damaged, DecklogError, Invalid
from decklog.db.sqlite.errors import is_full
from decklog.db.sqlite.file import holders_of
from decklog.journal.findings import Verification
from decklog.journal.journal import LOST_WRITES
from decklog.journal.rows import StreamHead
from decklog.journal.verify import Anchors, Verifier
from decklog.log import Decklog
from decklog.transfer.reading import Progress, no_progress
from decklog.transfer.verify_steps import VerifySteps

Finding = dict[str, str]

_LONG_AGO = timedelta(hours=1)
# How long doctor shows that writes were lost.
_RECENT = timedelta(days=30)
_MOST_PAGES = 10
_PAGE_SECONDS = 2.5
_LARGE_WAL = 256 * 1024 * 1024


def find_problems(log: Decklog, facts: dict[str, Any], *, deep: bool = False, progress: Progress = no_progress) -> list[Finding]:
    """List the problems of a log, each with the command that fixes it. `deep` also checks all pages and hash chains.

    Without it, checking pages ends after some seconds; `facts` get `unchecked_tables`.
    """
    findings = [
        *_check_disk(facts),
        *_check_permissions(facts),
        *_check_wal(log, facts),
        *_check_unread_bytes(log),
        *_check_pages(log, facts, deep, progress),
    ]
    if findings and findings[-1]["about"] == "page":
        return findings  # the checks below need a readable log
    findings += [*_check_standbys(facts), *_find_lost_writes(log)]
    return [*findings, *_find_stuck_leases(log), *_check_budgets(log), *(_check_chains(log, progress) if deep else [])]


def find_writers(log: Decklog) -> list[dict[str, object]]:
    """List the processes that write to a SQLite log at this moment, on systems with /proc/locks."""
    if log.db.engine != "sqlite":
        return []
    return [holder for holder in holders_of(f"{log.db.target}-lock") if holder["exclusive"]]


def _finding(about: str, what: str, mend: str) -> Finding:
    return {"about": about, "what": what, "mend": mend}


def _check_permissions(facts: dict[str, Any]) -> list[Finding]:
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


def _check_disk(facts: dict[str, Any]) -> list[Finding]:
    if facts["engine"] != "sqlite" or facts["read_only"] or not is_full(facts["path"]):
        return []
    return [_finding("disk", f"the disk is full; {facts['path']} can be read and not written", "Free some space on that disk.")]


def _check_wal(log: Decklog, facts: dict[str, Any]) -> list[Finding]:
    if facts["engine"] != "sqlite" or int(facts["wal_bytes"]) <= _LARGE_WAL:
        return []
    readers = [str(holder["pid"]) for holder in holders_of(f"{log.db.target}-shm")]
    who = f" (open in process {', '.join(readers)})" if readers else ""
    return [
        _finding(
            "wal", f"the WAL has {facts['wal_bytes']:,} bytes{who}", "End readers that have been open for long; it shrinks then."
        )
    ]


def _check_standbys(facts: dict[str, Any]) -> list[Finding]:
    if not facts.get("standbys") or facts["synchronous_standby_names"]:
        return []
    what = f"{counted(facts['standbys'], 'standby')} without synchronous_standby_names: a failover can lose acknowledged writes"
    return [_finding("standby", what, "alter system set synchronous_standby_names = 'ANY 1 (*)'; select pg_reload_conf();")]


def _find_lost_writes(log: Decklog) -> list[Finding]:
    since = log.clock.now() - _RECENT
    return [
        _finding("failover", f"{entry.at:%Y-%m-%d %H:%M} {entry.body}", f"decklog journal get @desk {entry.seq}")
        for entry in log.journal.find("@desk", subtype=LOST_WRITES, since=since)
    ]


def _check_unread_bytes(log: Decklog) -> list[Finding]:
    mend = f"decklog recover {log.db.target} (after a copy of the file and its -wal)"
    return [_finding("wal", what, mend) for found in log.db.check_wal() for what in found]


def _check_pages(log: Decklog, facts: dict[str, Any], deep: bool, progress: Progress) -> list[Finding]:
    try:
        wrong, facts["unchecked_tables"] = log.db.check_pages(_MOST_PAGES, None if deep else _PAGE_SECONDS, progress)
    except Damaged as problem:
        wrong = [problem.message]
    mend = f"decklog recover {log.db.target} (after a copy of the file), or decklog restore BACKUP"
    return [_finding("page", f"the file is damaged: {text.strip()}", mend) for text in wrong[:_MOST_PAGES]]


def _find_stuck_leases(log: Decklog) -> list[Finding]:
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


def _check_budgets(log: Decklog) -> list[Finding]:
    """Find budget sums that differ from the charges; such a budget would stop too early or too late."""
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


def _check_chains(log: Decklog, progress: Progress) -> list[Finding]:

    found = []
    is_file = log.db.engine == "sqlite"
    mend = "decklog restore BACKUP; decklog recover FILE keeps what is whole" if is_file else "Restore the server's own backup."
    for problem in verify(log, progress=progress).problems:
        place = f"{problem.stream}:{problem.seq} " if problem.stream else ""
        found.append(_finding("chain", f"{place}{problem.what}", mend))
    return found


_SECONDS_BETWEEN_SAVES = 1.0
# Older runs start again: verified entries may have changed since.
_SECONDS_RESUMABLE = 24 * 3600.0


class VerifyMarks:
    """The user's verification state of a log, in the state folder: the heads of an unfinished run, and the last anchor."""

    def __init__(self, log: Decklog) -> None:
        home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
        target = log.db.target
        place = os.path.realpath(target) if log.db.engine == "sqlite" else target
        self._folder = os.path.join(home, "decklog", "verified")
        name = os.path.join(self._folder, sha256(place.encode()).hexdigest()[:24])
        self.anchor = f"{name}.anchor"
        self._unfinished = f"{name}.unfinished"
        self._log = log.db.made_at()

    def unfinished(self) -> dict[str, Any]:
        """Return the heads that an interrupted run of the last day has verified."""
        try:
            with open(self._unfinished, encoding="utf-8") as file:
                kept = json.load(file)
            if kept["log"] == self._log and time.time() - kept["at"] < _SECONDS_RESUMABLE:
                return dict(kept["heads"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # ignore an invalid file
        return {}

    def save(self, heads: dict[str, Any]) -> None:
        """Save the progress of a run. If that fails, an interrupted run starts again."""
        partial = f"{self._unfinished}.{os.getpid()}"
        with suppress(OSError):
            self.make_folder()
            with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump({"log": self._log, "at": time.time(), "heads": heads}, file)
            os.replace(partial, self._unfinished)

    def finish(self) -> None:
        with suppress(OSError):
            os.unlink(self._unfinished)

    def make_folder(self) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)


def verify(log: Decklog, *, anchor: str | None = None, full: bool = False, progress: Progress = no_progress) -> Verification:
    """Verify a whole log; after an interruption, continue after the entries that were already verified.

    With `full`, start from the beginning and compare all words of the text index, of which a large log has a sample compared.
    """
    marks = VerifyMarks(log)
    heads: dict[str, Any] = {} if full else marks.unfinished()
    steps = VerifySteps(log, heads, full=full)
    saved_at = time.monotonic()

    def note(step: dict[str, Any]) -> None:
        nonlocal saved_at
        heads.update(step.get("heads", {}))
        if (now := time.monotonic()) - saved_at > _SECONDS_BETWEEN_SAVES:
            marks.save(heads)
            saved_at = now
        is_chain = "heads" in step
        progress("verifying entries" if is_chain else "checking what belongs to them", step["done"], step["whole"])

    try:
        result = steps.run(note)
    except BaseException:
        marks.save(heads)
        raise
    marks.finish()
    result.anchored = 0
    if anchor is not None:
        compared = log.journal.verifier().run_checks(partial(Verifier.check_anchors, anchors=Anchors(anchor)))
        result.anchored = compared.anchored
        result.problems += compared.problems
    if result.ok:
        _save_anchor(marks, anchor, steps.heads())
    return result


def verify_since_anchor(
    log: Decklog, *, anchor: str | None = None, full: bool = False, progress: Progress = no_progress
) -> Verification:
    """Verify entries after the anchor or the last successful run; without either, verify everything."""
    marks = VerifyMarks(log)
    path = anchor or marks.anchor
    if full or not any(Anchors(path).kept()):
        return verify(log, anchor=anchor, full=full, progress=progress)
    return log.journal.verify(anchor=path, since_anchor=True)


def _save_anchor(marks: VerifyMarks, anchor: str | None, heads: list[StreamHead]) -> None:
    if anchor is not None:
        Anchors(anchor).keep(heads)
        return
    with suppress(OSError):
        marks.make_folder()
        Anchors(marks.anchor).keep(heads)


# Name, type in Prometheus' terms, description, value.
Gauge = tuple[str, str, str, float]

_SECONDS = 2.0
_GAUGE_TEXTS = {
    "up": "Whether the log could be read.",
    "entries_not_indexed": "Entries that are not in the text index yet.",
    "expired_leases": "Running tasks whose lease has expired.",
    "pool_connections": "Open connections to the server.",
    "pool_waiting": "Calls that wait for a connection now.",
    "pool_waits_total": "Calls that had to wait for a connection.",
    "pool_wait_seconds_total": "Time that calls waited for a connection.",
    "standby": "Whether the server is a read-only standby.",
    "replication_lag_seconds": "How far a standby is behind its primary.",
}
GAUGE_NAMES = tuple(_GAUGE_TEXTS)
_EXPIRED = "select count(*) from tasks where state = 'running' and leased_until < :now"


def check_ready(log: Decklog) -> None:
    """Raise an error if the log can't be read, or has another schema than this Decklog needs."""
    with log.db.within(_SECONDS):
        found, required, known = log.db.read(log.db.schema_versions)
    if found < known or required > known:
        raise Invalid(f"the log has schema {found}; this Decklog needs {known}", found=found, needed=known)


def measure_gauges(log: Decklog) -> list[Gauge]:
    """Measure the log; for an unreadable one, return only that it is not up."""
    try:
        with log.db.within(_SECONDS):
            found = {"up": 1.0, **log.db.read(lambda: _measure(log))}
    except DecklogError:
        found = {"up": 0.0}
    return [(f"decklog_{name}", _gauge_type(name), _GAUGE_TEXTS[name], value) for name, value in found.items()]


def _gauge_type(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"


def _measure(log: Decklog) -> dict[str, float]:
    expired = log.db.one(_EXPIRED, {"now": to_text(log.clock.steady())})
    return {
        "entries_not_indexed": log.journal.not_indexed(),
        "expired_leases": expired[0] if expired else 0,
        **log.db.server_gauges(),
    }
