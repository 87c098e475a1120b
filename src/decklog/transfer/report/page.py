"""The report of a run or of a log as one HTML page."""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from html import escape
from itertools import chain
from typing import Any, TypeVar

from decklog.core import display
from decklog.core.display import counted, dollars, took
from decklog.log import Decklog
from decklog.records.record import find_all
from decklog.stores.approvals.approval import Approval
from decklog.stores.results.money import BudgetUsage, SpendRow
from decklog.stores.runs.run import Run
from decklog.stores.tasks.criteria import Criterion
from decklog.stores.tasks.task import Attempt, Task
from decklog.transfer.reading import read_entries
from decklog.transfer.report.document import called_out, document, figures, share, shown_time, table, write_file
from decklog.transfer.report.words import EntrySentence, describe_entry

T = TypeVar("T")


_MOST_BARS = 200


def attempt_bars(log: Decklog, tasks: list[Task]) -> Iterator[str]:
    """Draw every attempt as a bar; only the first ones of a very long run."""
    rows = [(task, attempt) for task in tasks if task.attempts for attempt in log.tasks.attempts(task.id)]
    yield "<h2>Timeline</h2>\n"
    if not rows:
        yield '<p class="soft">No task was worked on yet.</p>\n'
        return
    rows.sort(key=lambda row: (row[1].started_at, row[0].id))
    shown = rows[:_MOST_BARS]
    start = shown[0][1].started_at
    end = max(attempt.ended_at or log.clock.now() for _, attempt in shown)
    yield f'<p class="soft">{took(end - start)}, from {shown_time(start)} to {shown_time(end)} UTC.</p>\n'
    for task, attempt in shown:
        yield _bar(task, attempt, start, end)
    if len(rows) > len(shown):
        yield f'<p class="soft">The first {len(shown)} of {len(rows)} attempts.</p>\n'


def _bar(task: Task, attempt: Attempt, start: datetime, end: datetime) -> str:
    outcome = attempt.outcome.value if attempt.outcome else "running"
    ended = attempt.ended_at or end
    left, width = _share(attempt.started_at - start, end - start), _share(ended - attempt.started_at, end - start)
    said = f"attempt {attempt.number} by {attempt.worker}: {outcome}, {took(ended - attempt.started_at)}"
    return (
        f'<div class="attempt"><span>{escape(task.title)}</span>'
        f'<span class="track"><span class="bar {outcome}" style="left:{left:.2f}%;width:{width:.2f}%"'
        f' title="{escape(said)}"></span></span>'
        f'<span class="soft">{escape(attempt.worker)}, {outcome}</span></div>\n'
    )


def _share(part: timedelta, whole: timedelta) -> float:
    seconds = max(whole.total_seconds(), 0.001)
    return min(100.0, max(0.0, part.total_seconds() / seconds * 100))


_MOST_TEXT = 4000
_SHORT = 280
# Within a day, fold at least this number of entries, so that fold lines stay few.
_MIN_FOLDED = 8


def entry_lines(log: Decklog, run_id: str, until: int) -> Iterator[str]:
    """Yield a run's entries up to a number, by day."""
    yield "<h2>What happened</h2>\n"
    day, quiet = "", list[str]()
    for entry in chain.from_iterable(read_entries(log, run_id, after=0, until=until)):
        words = describe_entry(entry)
        if words.is_bookkeeping and entry["at"][:10] == day:
            quiet.append(words.text)
            continue
        if entry["at"][:10] != day:
            yield from _fold_lines(quiet)
            yield f'{"</ol>" if day else ""}<h3>{escape(entry["at"][:10])}</h3>\n<ol class="story">\n'
            day = entry["at"][:10]
        if len(quiet) >= _MIN_FOLDED:
            yield from _fold_lines(quiet)
        yield _line(entry, words)
    yield from _fold_lines(quiet)
    yield "</ol>\n" if day else ""


def _fold_lines(quiet: list[str]) -> Iterator[str]:
    if quiet:
        listed = "".join(f"<li>{escape(_limit_text(text))}</li>" for text in quiet)
        title = f"{counted(len(quiet), 'entry', 'entries')} of bookkeeping up to here"
        yield f"<li><span></span><span></span><details><summary>{title}</summary><ol>{listed}</ol></details></li>\n"
        quiet.clear()


def _line(entry: dict[str, Any], words: EntrySentence) -> str:
    # A reader finds the entry by its number and time.
    where = f'<span class="soft" title="entry {entry["seq"]}">{escape(entry["at"][11:19])}</span>'
    who = f'<span class="soft">{escape(entry["agent"] or "")}</span>'
    return f'<li>{where}{who}<div class="text{f" {words.tone}" if words.tone else ""}">{_text(words.text)}</div></li>\n'


def _text(text: str) -> str:
    """Format a text, with the rest of a long one folded; show a command as typed."""
    shown = f"<code>{escape(_limit_text(text))}</code>" if text.startswith("$ ") else escape(_limit_text(text))
    if len(text) <= _SHORT:
        return shown
    return f"<details><summary>{escape(' '.join(text[:_SHORT].split()))} …</summary>{shown}</details>"


def _limit_text(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} … ({len(text):,} characters)"


# Classes of the page, by tone.
_TONES = {display.GOOD: "good", display.BAD: "bad", display.NEED: "warn", display.WARN: "warn"}
# The most important entries.
_URGENT = ("blocked", "waiting", "paused", "running", "pending", "done", "abandoned")


def write_page(log: Decklog, run_id: str, path: str | None = None, *, overwrite: bool = False) -> dict[str, Any]:
    """Write the page of a run, as it is now, into a file that only its owner can read."""
    run = log.runs.get(run_id)
    path = os.path.abspath(path or f"{''.join(c if c.isalnum() or c in '-_.' else '_' for c in run_id)}.html")
    parts = document(run.goal, RunPage(log, run).parts(), log.clock.now())
    return {"run": run_id, "path": path, "bytes": write_file(path, parts, overwrite=overwrite)}


class RunPage:
    """The data of one run's page, read from the log once."""

    def __init__(self, log: Decklog, run: Run) -> None:
        self._log = log
        self._run = run
        self._tasks = [*find_all(log.tasks.find, run.id)]
        self._criteria = [*find_all(log.criteria.find, run.id)]
        self._approvals = [*find_all(log.approvals.find, run.id, oldest_first=True)]
        self._spent = log.ledger.summary(run.id)
        self._budgets = log.budgets.burn(scope="run", scope_id=run.id)

    def parts(self) -> Iterator[str]:
        head = next(head for head in self._log.journal.heads() if head["stream"] == self._run.id)
        yield from self._summary()
        yield called_out("Needs attention", list(self._waiting()))
        yield called_out("Blocked", list(self._in_the_way()), "needs stuck")
        yield from chain(self._shown_criteria(), self._money(), self._shown_approvals(), self._shown_tasks())
        yield from attempt_bars(self._log, self._tasks)
        yield from entry_lines(self._log, self._run.id, head["seq"])
        yield f'<p class="soft">Entry {head["seq"]:,} is the last. Its hash, to compare with: <code>{head["hash"]}</code></p>\n'

    def _summary(self) -> Iterator[str]:
        run = self._run
        facts = [run.id, run.repo, run.branch and f"branch {run.branch}", run.parent_run_id and f"from {run.parent_run_id}"]
        yield f'<h1>{escape(run.goal)}</h1>\n<p class="soft">{escape(" · ".join(fact for fact in facts if fact))}</p>\n'
        if run.summary:
            yield f"<p>{escape(run.summary)}</p>\n"
        yield figures(self._figures())
        result = self._log.journal.verify(run.id)
        if result.ok:
            yield f'<p class="good">Verified: {counted(result.entries, "entry", "entries")}, hash chain whole.</p>\n'
        else:
            assert result.first is not None
            yield f'<p class="bad">Does not verify: entry {result.first.seq}: {escape(result.first.what)}.</p>\n'

    def _figures(self) -> Iterator[tuple[str, str]]:
        run, total = self._run, self._spent["total"]
        yield (
            self._log.overview.run(run.id).status.value,
            f"{'ended' if run.ended_at else 'started'} {shown_time(run.ended_at or run.started_at)}",
        )
        more = f", {total['unpriced_calls']} unpriced" if total["unpriced_calls"] else ""
        yield dollars(total["cost_microdollars"]), f"in {counted(total['calls'], 'call')}{more}"
        yield f"{sum(task.state == 'done' for task in self._tasks)} of {len(self._tasks)}", "tasks done"
        if self._criteria:
            # By evidence that is still valid.
            met = sum(one.status == "met" and not one.is_stale for one in self._criteria)
            yield f"{met} of {len(self._criteria)}", "criteria met"
        yield (
            took((run.ended_at or self._log.clock.now()) - run.started_at),
            "from start to end" if run.ended_at else "so far",
        )

    def _waiting(self) -> Iterator[str]:
        """List the items that wait for a person, as `decklog now` does."""
        for item in find_all(self._log.overview.waiting):
            if item.run_id == self._run.id and item.is_decision:
                yield f"{join_lines(item.what)}{f' ({item.by})' if item.by else ''}"

    def _in_the_way(self) -> Iterator[str]:
        """List what blocks the run now or soon."""
        for task in self._tasks:
            if task.state == "blocked":
                yield f"{task.title}: {join_lines(task.blocker or task.reason)}"
        for criterion in self._criteria:
            if criterion.status in ("failed", "blocked"):
                yield f"Not shown: {criterion.criterion}"
        for budget in self._budgets:
            if budget["state"] == "warn":
                yield f"The budget is {budget['percent']} % spent"

    def _shown_criteria(self) -> Iterator[str]:
        if self._criteria:
            yield "<h2>What it had to show</h2>\n"
            yield from table(("criterion", "status", "evidence"), (_criterion(one) for one in self._criteria))

    def _money(self) -> Iterator[str]:
        total = self._spent["total"]
        if not total["calls"] and not self._budgets:
            return
        yield "<h2>Money</h2>\n"
        for budget in self._budgets:
            yield share(float(budget["percent"]), _budget(budget))
        by_task = self._log.ledger.summary(self._run.id, by="task")
        titles = {task.id: task.title for task in self._tasks}
        for name, rows in (("model", self._spent["rows"]), ("task", by_task["rows"])):
            shown = (_spent(row, titles.get(row["key"] or "", row["key"] or "(none)")) for row in rows)
            yield from table((name, "calls", "tokens", "spent"), shown, numbers=("calls", "tokens", "spent"))

    def _shown_approvals(self) -> Iterator[str]:
        if self._approvals:
            yield "<h2>Questions and answers</h2>\n"
            rows = (_approval(one) for one in self._approvals)
            yield from table(("question", "asked by", "answer", "by", "when", "why"), rows)

    def _shown_tasks(self) -> Iterator[str]:
        yield f"<h2>Tasks ({len(self._tasks)})</h2>\n"
        if self._tasks:
            heads = ("task", "state", "attempts", "outcome", "changed")
            tasks = sorted(self._tasks, key=lambda task: (_URGENT.index(task.state.value), task.created_at, -task.priority))
            yield from table(heads, map(_task, tasks), numbers=("attempts",))


def add_tone(word: str) -> Any:
    """Return a status word with its tone."""
    return (_TONES.get(display.TONES.get(word, ""), ""), word)


def _criterion(one: Criterion) -> tuple[Any, ...]:
    proof = " · ".join(part for part in (one.actual, one.evidence, one.stale_reason) if part)
    name = one.criterion if one.required else f"{one.criterion} (not required)"
    return name, add_tone("stale" if one.is_stale else one.status.value), proof


def _approval(one: Approval) -> tuple[Any, ...]:
    by = f"{one.decided_by}, proven" if one.is_proven else one.decided_by or ""
    when = shown_time(one.decided_at or one.asked_at)
    return (
        join_lines(one.question or one.subject or one.source),
        one.asked_by or "",
        add_tone(one.state.value),
        by,
        when,
        one.rationale or "",
    )


def _task(task: Task) -> tuple[Any, ...]:
    said = task.blocker if task.state == "blocked" else task.summary or task.reason
    state = add_tone(task.state.value)
    who = f" by {task.worker}" if task.worker else ""
    return task.title, (state[0], state[1] + who), str(task.attempts), join_lines(said), shown_time(task.updated_at)


def _spent(row: SpendRow, name: str) -> tuple[Any, ...]:
    tokens = row["input_tokens"] + row["cache_read_tokens"] + row["cache_create_tokens"] + row["output_tokens"]
    unknown = row["unpriced_calls"] == row["calls"]
    return name, f"{row['calls']:,}", f"{tokens:,}", "price unknown" if unknown else dollars(row["cost_microdollars"])


def _budget(budget: BudgetUsage) -> str:
    def amount(figure: int) -> str:
        return dollars(figure) if budget["unit"] == "microdollars" else counted(figure, "token")

    period = "" if budget["period"] == "forever" else f" a {budget['period']}"
    return f"{amount(budget['spent'])} of {amount(budget['ceiling'])}{period} ({budget['percent']} %)"


def join_lines(text: str | None) -> str:
    """Return a text as one line."""
    return " ".join((text or "").split())
