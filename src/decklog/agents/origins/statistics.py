"""Statistics of written and surviving lines by origin, with their cost."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from operator import itemgetter
from typing import Any

from decklog.agents.origins.commit_story import KINDS, find_unreviewed, resolve_commit
from decklog.agents.origins.exporting import ExportSummary, export_notes
from decklog.agents.origins.importing import import_notes
from decklog.agents.sessions import NO_COST, WorkCost, cost_of_work, model_of_run
from decklog.core.display import counted, dollars
from decklog.core.errors import Invalid, NotFound
from decklog.log import Decklog
from decklog.provenance.attribution import LineRange, Origin
from decklog.provenance.commit_origins import CommitOrigins
from decklog.provenance.git import GitRepository
from decklog.provenance.history import CommitChanges, FileChange, read_changes
from decklog.provenance.survival import Survival

HEADS = ("written", "kept", *KINDS, "cost", "per kept line", "lifetime")
_DAY_SECONDS = 24 * 60 * 60
# A run and a task whose cost is divided among their lines.
Work = tuple[str, str | None]
_Label = tuple[str, str, datetime]


class StatisticsKey(StrEnum):
    """Grouping of the rows."""

    AGENT = "agent"
    MODEL = "model"
    TASK = "task"
    PERSON = "person"
    PATH = "path"


@dataclass
class StatisticsRow:
    """Lines of one key by kind of origin: written in the range of commits, and kept at its end."""

    key: str
    written: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    # Lines that agents wrote, in commits that no review covers.
    unreviewed: int = 0
    work: Counter[Work] = field(default_factory=Counter)
    microdollars: float = 0
    unpriced_calls: int = 0
    # Seconds from the commit that wrote a line to the one that removed it, with the number of such lines.
    lifetimes: Counter[int] = field(default_factory=Counter)

    @property
    def lifetime_days(self) -> float | None:
        """Median lifetime of the lines that were removed; None if none was."""
        half = (self.lifetimes.total() + 1) // 2
        for seconds in sorted(self.lifetimes):
            half -= self.lifetimes[seconds]
            if half <= 0:
                return round(seconds / _DAY_SECONDS, 2)
        return None

    @property
    def cost_per_kept_line(self) -> int | None:
        """Cost in microdollars per kept line of an agent; None without such a line."""
        kept = self.kept["agent"] + self.kept["mixed"]
        return round(self.microdollars / kept) if kept else None

    def as_dict(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "written": self.written.total(),
            "kept": self.kept.total(),
            "written_by": {kind: self.written[kind] for kind in KINDS},
            "kept_by": {kind: self.kept[kind] for kind in KINDS},
            "unreviewed": self.unreviewed,
            "cost_microdollars": round(self.microdollars),
            "unpriced_calls": self.unpriced_calls,
            "cost_per_kept_line_microdollars": self.cost_per_kept_line,
            "lifetime_days": self.lifetime_days,
        }


@dataclass
class LineStatistics:
    """Statistics of a range of commits. `missing` counts lines that are unknown because git objects are gone."""

    revisions: str
    by: StatisticsKey
    commits: int
    rows: list[StatisticsRow]
    total: StatisticsRow
    missing: int

    def as_dict(self) -> dict[str, Any]:
        own = {"revisions": self.revisions, "by": self.by.value, "commits": self.commits, "missing": self.missing}
        return {**own, "rows": [row.as_dict() for row in self.rows], "total": self.total.as_dict()}

    def as_markdown(self) -> str:
        """Return a Markdown table for a pull request."""
        heads = [self.by.value, *HEADS]
        lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
        lines += [cells_of(row) for row in [*self.rows, self.total]]
        table = "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
        return f"{table}\n" + (f"\n{text}\n" if (text := self.review_text) else "")

    @property
    def review_text(self) -> str:
        """How many lines of agents were not reviewed; empty for none."""
        of_agents = self.total.written["agent"] + self.total.written["mixed"]
        return (
            f"Not reviewed: {self.total.unreviewed:,} of {counted(of_agents, 'line')} by agents" if self.total.unreviewed else ""
        )


def cells_of(row: StatisticsRow) -> list[str]:
    """Return the cells of a row: counts of written lines by origin, costs, and the lifetime of lines."""
    per_line, days = row.cost_per_kept_line, row.lifetime_days
    has_agent = bool(row.work)
    return [
        row.key,
        f"{row.written.total():,}",
        f"{row.kept.total():,}",
        *(f"{row.written[kind]:,}" for kind in KINDS),
        dollars(round(row.microdollars)) if has_agent else "–",
        "–" if per_line is None or not has_agent else dollars(per_line),
        "–" if days is None else f"{days:,.1f} days",
    ]


def collect_statistics(repo: GitRepository, log: Decklog, revisions: str, by: StatisticsKey) -> LineStatistics:
    """Count the lines of a range `A..B`, or of all commits up to a revision."""
    return _Collector(repo, log, by).collect(revisions)


class _Collector:
    def __init__(self, repo: GitRepository, log: Decklog, by: StatisticsKey) -> None:
        self._repo = repo
        self._log = log
        self._by = by
        self._origins = CommitOrigins(repo, log)
        self._rows: dict[str, StatisticsRow] = {}
        # First and last line of ranges of added lines, with row key, origin kind and time, by commit and path.
        self._lines: dict[tuple[str, str], list[tuple[int, int, _Label]]] = {}
        self._unreviewed: set[str] = set()
        self._edit = lru_cache(maxsize=None)(log.edits.get)
        self._model = lru_cache(maxsize=None)(lambda run_id: model_of_run(log, run_id) or "(no model)")
        self._title = lru_cache(maxsize=None)(self._load_title)

    def collect(self, revisions: str) -> LineStatistics:
        start, separator, end = revisions.rpartition("..")
        end = end or "HEAD"
        for name in (start, end) if separator and start else (end,):
            resolve_commit(self._repo, name)
        span = f"{start}..{end}" if separator and start else end
        commits = list(read_changes(self._repo, span, oldest_first=True))
        self._origins.begin(start if separator and start else None)
        for commit in commits:
            self._origins.add_commit(commit)
        self._unreviewed = find_unreviewed(self._repo, self._log, [commit.commit for commit in commits])
        for commit in commits:
            self._count_written(commit)
        self._count_kept(commits, span, end)
        unpriced_calls = self._share_costs()
        rows = sorted(self._rows.values(), key=lambda row: (-row.written.total(), row.key))
        return LineStatistics(span, self._by, len(commits), rows, _total(rows, unpriced_calls), self._origins.missing)

    def _count_written(self, commit: CommitChanges) -> None:
        for file in commit.files:
            if not file.added:
                continue
            lines = self._lines.setdefault((commit.commit, file.path), [])
            for one in self._origins.find_session_origins(commit, file):
                row = self._row(self._key(one.origin, commit, file.path))
                size = one.end - one.start + 1
                row.written[one.origin.kind] += size
                if one.origin.sessions and commit.commit in self._unreviewed:
                    row.unreviewed += size
                for work in self._work(one):
                    row.work[work] += size
                lines.append((one.start, one.end, (row.key, one.origin.kind, commit.at)))

    def _row(self, key: str) -> StatisticsRow:
        if key not in self._rows:
            self._rows[key] = StatisticsRow(key)
        return self._rows[key]

    def _key(self, origin: Origin, commit: CommitChanges, path: str) -> str:
        if self._by is StatisticsKey.PATH:
            return path
        if self._by is StatisticsKey.PERSON:
            return origin.person or commit.author
        if not origin.sessions:
            return f"({origin.kind})"
        if self._by is StatisticsKey.AGENT:
            return " + ".join(dict.fromkeys(session.partition(":")[0] for session in origin.sessions))
        if origin.kind == "mixed":
            return "(mixed)"
        edits = [self._edit(edit) for edit in origin.edits]
        if self._by is StatisticsKey.MODEL:
            return " + ".join(dict.fromkeys(self._model(edit.run_id) for edit in edits)) or "(no model)"
        return next((self._title(edit.task_id) for edit in edits if edit.task_id is not None), "(no task)")

    def _work(self, one: LineRange) -> Iterator[Work]:
        for edit in map(self._edit, one.origin.edits):
            if edit.run_id is not None and edit.session is not None:
                yield edit.run_id, edit.task_id

    def _load_title(self, task_id: str) -> str:
        try:
            return f"{task_id} {self._log.tasks.get(task_id).title}"
        except NotFound:
            return task_id

    def _count_kept(self, commits: list[CommitChanges], span: str, end: str) -> None:
        """Count the lines that the range's commits added and that still exist at its end."""
        survival = Survival(self._repo, self._labels, self._count_removed)
        for (key, kind, _), count in survival.count(commits, span, resolve_commit(self._repo, end)).items():
            self._rows[key].kept[kind] += count

    def _labels(self, commit: CommitChanges, file: FileChange, start: int, last: int) -> Iterator[tuple[int, _Label]]:
        """Yield the labels of added lines, with the number of lines that each has."""
        ranges = self._lines[commit.commit, file.path]
        for first, end, label in ranges[bisect_left(ranges, start, key=itemgetter(1)) :]:
            if first > last:
                return
            yield min(end, last) - max(first, start) + 1, label

    def _count_removed(self, commit: CommitChanges, label: _Label, count: int) -> None:
        key, _, written_at = label
        self._rows[key].lifetimes[max(0, round((commit.at - written_at).total_seconds()))] += count

    def _share_costs(self) -> int:
        """Divide the cost of each session or task among rows, in proportion to their lines; return all calls without a price."""
        lines: Counter[Work] = sum((row.work for row in self._rows.values()), Counter())
        unpriced_calls = 0
        for work, whole in lines.items():
            cost = self._cost(work)
            unpriced_calls += cost.unpriced_calls
            for row in self._rows.values():
                if part := row.work[work]:
                    row.microdollars += cost.microdollars * part / whole
                    row.unpriced_calls += cost.unpriced_calls
        return unpriced_calls

    def _cost(self, work: Work) -> WorkCost:
        try:
            return cost_of_work(self._log, *work)
        except NotFound:
            return NO_COST


def _total(rows: list[StatisticsRow], unpriced_calls: int) -> StatisticsRow:
    # A session with lines in several rows is counted once.
    total = StatisticsRow("total", unpriced_calls=unpriced_calls)
    for row in rows:
        total.written += row.written
        total.kept += row.kept
        total.unreviewed += row.unreviewed
        total.work += row.work
        total.lifetimes += row.lifetimes
        total.microdollars += row.microdollars
    return total


def attribute_merged(repo: GitRepository, log: Decklog, merged: str, result: str, *, dry_run: bool = False) -> ExportSummary:
    """Write the note of a merge's result from the notes of the commits BASE..HEAD and from the log."""
    base, separator, head = merged.partition("..")
    if not separator or not base or not head:
        raise Invalid(f"{merged!r} is not BASE..HEAD", field="merged")
    hint = "Fetch it: in CI, check out with the whole history."
    for name in (base, head):
        resolve_commit(repo, name, hint)
    made = resolve_commit(repo, result, hint)
    commits = set(repo.text("rev-list", f"{base}..{head}", "--").split())
    import_notes(repo, log, commits=commits)
    return export_notes(repo, log, f"{base}..{made}", dry_run=dry_run)
