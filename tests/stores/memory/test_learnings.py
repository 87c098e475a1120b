from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from decklog.stores.memory.learnings import BadLine, LearningLine, format_entry, parse_line, read_all
from tests.stores.processes import at_once

LINE = '2026-11-15T08:30:00Z [task=T-17] Observed: "the linter runs twice" → skill:faster-checks'


def _one_line(text: str) -> bool:
    return text.splitlines() == [text] and bool(text.strip()) and "\x00" not in text


moments = st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC)).map(
    lambda moment: moment.isoformat(timespec="microseconds")[:-6] + "Z"
)
timestamps = st.one_of(moments, st.dates(min_value=datetime(1000, 1, 1).date()).map(str))
text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=80)
observations = st.one_of(text, st.text('"\\→ ]n', min_size=1, max_size=12)).filter(_one_line)
tasks = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="]"), min_size=1, max_size=30).filter(
    _one_line
)
names = st.text("abcXYZ019._-", min_size=1, max_size=20).map(lambda name: f"skill:{name}")
candidates = st.one_of(st.just("GAIA.md"), st.just("dismissed"), names)
lines = st.builds(LearningLine, timestamps, tasks, observations, candidates)


@settings(deadline=None)
@given(entry=lines)
def test_reading_gives_back_what_was_written(entry: LearningLine) -> None:
    line = format_entry(entry)
    assert "\n" not in line
    assert parse_line(line) == entry
    assert parse_line(line, tolerant=True) == entry


@settings(deadline=None)
@given(entries=st.lists(lines, max_size=8))
def test_a_whole_log_comes_back_line_by_line(entries: list[LearningLine]) -> None:
    written = "".join(format_entry(entry) + "\n" for entry in entries)
    assert read_all(written) == (entries, [])


@settings(deadline=None)
@given(line=st.text(max_size=60))
def test_any_other_line_is_nothing_or_an_error(line: str) -> None:
    try:
        entry = parse_line(line)
    except ValueError:
        return
    assert entry is None or format_entry(entry) == line.removesuffix("\n").removesuffix("\r")


def test_quotes_are_marked_so_that_a_line_has_one_reading() -> None:
    entry = LearningLine("2026-11-15", "T", 'he said "hi" → GAIA.md', "dismissed")
    line = format_entry(entry)
    assert line == '2026-11-15 [task=T] Observed: "he said \\"hi\\" → GAIA.md" → dismissed'
    assert parse_line(line) == entry


def test_a_log_that_leaves_its_quotes_bare_is_read_when_asked_to() -> None:
    bare = '2026-11-15 [task=T] Observed: "he said "hi" in C:\\new" → GAIA.md'
    with pytest.raises(BadLine):
        parse_line(bare)
    read = parse_line(bare, tolerant=True)
    assert read is not None
    assert read.observation == 'he said "hi" in C:\\new'


@pytest.mark.parametrize("blank", ["", "  ", "\n", "\t\r\n"])
def test_a_blank_line_is_nothing(blank: str) -> None:
    assert parse_line(blank) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task_id", ""),
        ("task_id", "a]b"),
        ("task_id", "a\nb"),
        ("task_id", "a b"),
        ("task_id", "a\u2028b"),
        ("timestamp", ""),
        ("timestamp", "2026-11-15 08:30:00Z"),
        ("timestamp", "2026-13-15"),
        ("timestamp", "2026-02-30T00:00:00Z"),
        ("timestamp", "2026-11-15T08:30:00+02:00"),
        ("timestamp", "2026-11-15T08:30:00Z\n"),
        ("timestamp", "yesterday"),
        ("observation", ""),
        ("observation", "   "),
        ("observation", "two\nlines"),
        ("observation", "two\rlines"),
        ("observation", "two\u2029lines"),
        ("observation", "ends\n"),
        ("observation", "nul\x00"),
        ("observation", "half \ud800"),
        ("candidate", "skill:"),
        ("candidate", "skill:x\n"),
        ("candidate", "skill:a b"),
        ("candidate", "skill:é"),
        ("candidate", "README.md"),
        ("candidate", "gaia.md"),
    ],
)
def test_every_field_is_checked(field: str, value: str) -> None:
    given = {"timestamp": "2026-11-15", "task_id": "T", "observation": "x", "candidate": "GAIA.md"} | {field: value}
    with pytest.raises(ValueError):
        LearningLine(**given)


def test_a_bad_line_is_named_by_its_number_or_left_out() -> None:
    log = f"{LINE}\n\ngarbage\n{LINE}\n2026-11-15T08:30:00Z [task=T-18] Obser"
    with pytest.raises(BadLine, match="line 3") as refused:
        read_all(log)
    assert refused.value.details["line"] == 3
    entries, bad = read_all(log, tolerant=True)
    assert len(entries) == 2
    assert [number for number, _ in bad] == [3, 5]


# The store


def test_a_learning_is_noted_and_written_as_its_line(log: Decklog, clock: ManualClock, run_id: str) -> None:
    learning = log.learnings.note("T-17", 'the "linter" runs twice', candidate="skill:faster-checks", run_id=run_id)
    assert log.learnings.get(learning.id) == learning
    assert learning.state == "open"
    assert (
        learning.line() == '2026-01-01T00:00:00.000000Z [task=T-17] Observed: "the \\"linter\\" runs twice" → skill:faster-checks'
    )
    assert log.learnings.lines() == learning.line() + "\n"


def test_a_learning_goes_to_a_document_a_skill_or_nowhere(log: Decklog, clock: ManualClock) -> None:
    to_document, to_skill, nowhere = (log.learnings.note("T", text).id for text in ("a", "b", "c"))
    clock.advance(days=1)
    assert log.learnings.promote(to_document, by="ana").candidate == "GAIA.md"
    assert log.learnings.promote(to_skill, to="skill:review").candidate == "skill:review"
    gone = log.learnings.dismiss(nowhere, by="ana", reason="known")
    assert (gone.state, gone.candidate, gone.decided_at, gone.decided_by) == ("dismissed", "dismissed", clock.now(), "ana")
    assert [learning.id for learning in log.learnings.find(state="promoted", oldest_first=True)] == [to_document, to_skill]
    assert log.learnings.find(state="open") == []


def test_a_decision_stands_but_a_dismissal_can_be_reconsidered(log: Decklog) -> None:
    learning = log.learnings.note("T", "x")
    log.learnings.dismiss(learning.id)
    assert log.learnings.dismiss(learning.id).already
    with pytest.raises(Invalid, match="dismiss"):
        log.learnings.promote(learning.id)
    assert log.learnings.promote(learning.id, to="GAIA.md").state == "promoted"
    assert log.learnings.promote(learning.id).already
    with pytest.raises(Conflict, match=r"GAIA\.md"):
        log.learnings.dismiss(learning.id)
    with pytest.raises(Conflict):
        log.learnings.promote(learning.id, to="skill:x")
    with pytest.raises(NotFound):
        log.learnings.promote("nobody")
    states = [log.journal.at("learnings", learning.id, str(entry.seq)) for entry in log.journal.history("learnings", learning.id)]
    assert [state.state for state in states] == ["open", "dismissed", "promoted"]  # type: ignore[attr-defined]
    assert log.journal.verify().ok


def test_what_was_dismissed_from_the_start_needs_no_decision(log: Decklog) -> None:
    learning = log.learnings.note("T", "x", candidate="dismissed")
    assert (learning.state, learning.decided_at) == ("dismissed", learning.noted_at)


@pytest.mark.slow
def test_the_same_key_at_once_is_one_learning(target: str) -> None:
    Decklog.open(target).close()
    at_once("tests.stores.memory.memory_jobs.note_a_learning", target, processes=4, times=3)
    with Decklog.open(target) as log:
        assert len(log.learnings.find()) == 1


def test_a_log_is_taken_over_once_and_whole(log: Decklog) -> None:
    text = f'{LINE}\n2026-11-15 [task=T] Observed: "a date alone" → dismissed\n'
    assert log.learnings.take_over(text) == {"added": 2, "known": 0, "bad": []}
    assert log.learnings.take_over(text) == {"added": 0, "known": 2, "bad": []}
    assert [learning.task_id for learning in log.learnings.find(oldest_first=True)] == ["T", "T-17"]
    with pytest.raises(BadLine, match="line 2"):
        log.learnings.take_over(f"{LINE.replace('17', '18')}\nbroken")
    assert len(log.learnings.find()) == 2
    taken = log.learnings.take_over(f"{LINE.replace('17', '18')}\nbroken", tolerant=True)
    assert (taken["added"], [line["line"] for line in taken["bad"]]) == (1, [2])
    assert read_all(log.learnings.lines())[1] == []
