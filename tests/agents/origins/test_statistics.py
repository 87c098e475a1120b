import os
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.agents.origins.commit_story import explain_commit
from decklog.agents.origins.statistics import StatisticsKey, collect_statistics
from decklog.conductor.git.repository import Repository
from decklog.core.errors import NotFound
from decklog.review.change import Change
from decklog.stores.workflow.reviews import ReviewVerdict
from tests.provenance.sessions import RecordedSession, record_text
from tests.provenance.text_repositories import AUTHOR, TextFolder


@pytest.fixture
def folder(tmp_path: Path) -> TextFolder:
    found = TextFolder(tmp_path / "repo")
    found.commit("First", a="one\ntwo\nthree\n")
    return found


def work_of_four(log: Decklog, folder: TextFolder) -> None:
    """Have two agents, a known person and somebody unknown write lines, and the person remove one of the first agent's."""
    claude = RecordedSession(log, folder, "claude", "s1")
    log.ledger.charge("opus", run_id=claude.run_id, cost_microdollars=300_000)
    claude.edit("a", "one\ntwo\nthree\nc1\nc2\n")
    claude.edit("a", "one\ntwo\nthree\nc1\nc2\nc3\n")
    folder.commit("Claude")
    codex = RecordedSession(log, folder, "codex", "s2", model="gpt")
    log.ledger.charge("gpt", run_id=codex.run_id, cost_microdollars=100_000)
    codex.edit("b", "x1\nx2\n")
    folder.commit("Codex")
    record_text(log, folder, "a", "one\ntwo\nthree\nc1\nc3\np1\n", kind="person", person="Bo <bo@example.org>")
    folder.commit("Bo")
    folder.commit("Somebody", b="x1\nx2\nu1\n")


def test_lines_are_counted_by_agent_with_cost_of_kept_ones(log: Decklog, folder: TextFolder) -> None:
    work_of_four(log, folder)
    found = collect_statistics(folder.repository, log, "HEAD~4..HEAD", StatisticsKey.AGENT)
    rows = {row.key: (row.written.total(), row.kept.total()) for row in found.rows}
    assert rows == {"claude": (3, 2), "codex": (2, 2), "(person)": (1, 1), "(unknown)": (1, 1)}
    claude = next(row for row in found.rows if row.key == "claude")
    assert (round(claude.microdollars), claude.cost_per_kept_line) == (300_000, 150_000)
    assert (found.commits, found.total.written.total(), found.total.kept.total()) == (4, 7, 6)
    assert dict(found.total.written) == {"agent": 5, "person": 1, "unknown": 1}


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        (StatisticsKey.MODEL, {"opus": 3, "gpt": 2, "(person)": 1, "(unknown)": 1}),
        (StatisticsKey.PATH, {"a": 4, "b": 3}),
        (StatisticsKey.PERSON, {AUTHOR: 6, "Bo <bo@example.org>": 1}),
        (StatisticsKey.TASK, {"(no task)": 5, "(person)": 1, "(unknown)": 1}),
    ],
)
def test_lines_are_counted_by_every_key(log: Decklog, folder: TextFolder, by: StatisticsKey, expected: dict[str, int]) -> None:
    work_of_four(log, folder)
    found = collect_statistics(folder.repository, log, "HEAD~4..HEAD", by)
    assert {row.key: row.written.total() for row in found.rows} == expected
    assert round(found.total.microdollars) == 400_000


def test_calls_without_a_price_are_counted_once_in_the_total(log: Decklog, folder: TextFolder) -> None:
    claude, codex = (RecordedSession(log, folder, *names) for names in (("claude", "s1"), ("codex", "s2")))
    for session in (claude, codex):
        log.ledger.charge("unknown-model", run_id=session.run_id, input_tokens=10)
    claude.edit("a", "one\ntwo\nthree\nfour\n")
    claude.edit("b", "1\n")
    codex.edit("c", "2\n")
    folder.commit()
    found = collect_statistics(folder.repository, log, "HEAD~1..HEAD", StatisticsKey.PATH)
    assert {row.key: row.unpriced_calls for row in found.rows} == {"a": 1, "b": 1, "c": 1}
    assert found.total.unpriced_calls == 2


def test_lines_are_counted_by_task(log: Decklog, folder: TextFolder) -> None:
    task = log.tasks.add(log.runs.start("Count").id, "Count further")
    RecordedSession(log, folder, "claude", "s1").edit("a", "one\ntwo\nthree\nfour\n", task_id=task.id)
    folder.commit()
    found = collect_statistics(folder.repository, log, "HEAD~1..HEAD", StatisticsKey.TASK)
    assert [row.key for row in found.rows] == [f"{task.id} Count further"]


def test_markdown_has_a_row_for_each_key(log: Decklog, folder: TextFolder) -> None:
    work_of_four(log, folder)
    text = collect_statistics(folder.repository, log, "HEAD~4..HEAD", StatisticsKey.AGENT).as_markdown()
    assert text.split("\n")[:3] == [
        "| agent | written | kept | agent | person | mixed | unknown | cost | per kept line | lifetime |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| claude | 3 | 2 | 3 | 0 | 0 | 0 | $0.30 | $0.15 | 0.0 days |",
    ]


def test_numbers_stay_after_a_rebase(log: Decklog, folder: TextFolder) -> None:
    work_of_four(log, folder)
    folder.git("checkout", "-q", "-b", "other", "HEAD~4")
    folder.commit("Base", c="new\n")
    folder.git("checkout", "-q", "main")
    before = collect_statistics(folder.repository, log, "HEAD~4..HEAD", StatisticsKey.AGENT).as_dict()
    folder.git("rebase", "-q", "other")
    after = collect_statistics(folder.repository, log, "HEAD~4..HEAD", StatisticsKey.AGENT).as_dict()
    assert after == before


def test_mixed_lines_name_both_agents(log: Decklog, folder: TextFolder) -> None:
    RecordedSession(log, folder, "claude", "s1").edit("a", "one\ntwo\nthree\nfour\n", mixed_with=["codex:s2"])
    folder.commit()
    found = collect_statistics(folder.repository, log, "HEAD~1..HEAD", StatisticsKey.AGENT)
    assert {row.key: dict(row.written) for row in found.rows} == {"claude + codex": {"mixed": 1}}
    by_model = collect_statistics(folder.repository, log, "HEAD~1..HEAD", StatisticsKey.MODEL)
    assert [row.key for row in by_model.rows] == ["(mixed)"]


@pytest.mark.parametrize("path", ['quo"te', "tab\there", "näh", "a b", "back\\slash"])
def test_kept_lines_of_odd_paths_are_counted(log: Decklog, folder: TextFolder, path: str) -> None:
    record_text(log, folder, path, "1\n2\n", session="claude:s1")
    folder.commit()
    found = collect_statistics(folder.repository, log, "HEAD~1..HEAD", StatisticsKey.AGENT)
    assert {row.key: (row.written.total(), row.kept.total()) for row in found.rows} == {"claude": (2, 2)}


def commit_on(folder: TextFolder, day: int) -> None:
    folder.git("add", "-A")
    folder.git("commit", "-q", "-m", "work", f"--date=2026-01-{day:02}T12:00:00+00:00")


def test_lifetime_is_the_median_time_until_lines_are_removed(log: Decklog, folder: TextFolder) -> None:
    base = folder.git("rev-parse", "HEAD")
    record_text(log, folder, "b", "1\n2\n3\n4\n", session="claude:s1")
    record_text(log, folder, "c", "5\n", session="codex:s2")
    commit_on(folder, 1)
    folder.put("b", "1\n2\n3\n")
    commit_on(folder, 3)
    folder.git("mv", "b", "d")
    folder.put("d", "1\n3\n")
    commit_on(folder, 5)
    folder.git("rm", "-q", "d")
    commit_on(folder, 11)
    found = collect_statistics(folder.repository, log, f"{base}..HEAD", StatisticsKey.AGENT)
    assert {row.key: row.lifetime_days for row in found.rows} == {"claude": 4.0, "codex": None}
    claude = next(row for row in found.rows if row.key == "claude")
    assert sorted(claude.lifetimes.elements()) == [days * 24 * 60 * 60 for days in (2, 4, 10, 10)]
    assert found.as_dict()["total"]["lifetime_days"] == 4.0
    assert "| 4.0 days |" in found.as_markdown()


def test_unknown_range_is_not_found(log: Decklog, folder: TextFolder) -> None:
    with pytest.raises(NotFound):
        collect_statistics(folder.repository, log, "nowhere..HEAD", StatisticsKey.AGENT)


def test_commit_has_shares_sessions_and_cost(log: Decklog, folder: TextFolder) -> None:
    work_of_four(log, folder)
    found = explain_commit(folder.repository, log, "HEAD~3")
    assert found.as_dict()["lines"] == {"agent": 3, "person": 0, "mixed": 0, "unknown": 0}
    (session,) = found.sessions
    assert (session.session, session.lines, session.model, session.cost.microdollars) == ("claude:s1", 3, "opus", 300_000)
    assert explain_commit(folder.repository, log, "HEAD").sessions == []


def test_commit_that_is_not_there_is_not_found(log: Decklog, folder: TextFolder) -> None:
    with pytest.raises(NotFound):
        explain_commit(folder.repository, log, "nowhere")


def long_history(folder: TextFolder, commits: int, files: int) -> None:
    """Write a history in one call of git: each commit adds three lines to one of some files."""
    stream, texts = [], [""] * files
    for number in range(commits):
        place = number % files
        texts[place] += "".join(f"line {number}.{part} of file {place}\n" for part in range(3))
        stream.append(f"commit refs/heads/long\ncommitter A <a@example.org> {1767225600 + number} +0000\ndata 1\nx\n")
        stream.append(f"M 644 inline f{place}\ndata {len(texts[place])}\n{texts[place]}\n")
    folder.git("fast-import", "--quiet", given="".join(stream))
    folder.git("checkout", "-q", "long")


def test_lines_of_a_copied_file_have_the_origin_of_the_first(log: Decklog, folder: TextFolder) -> None:
    record_text(log, folder, "b", "1\n2\n", session="claude:s1")
    folder.commit()
    folder.put("c", "1\n2\n")
    folder.put("d", "3\n")
    folder.commit("Copy")
    for revisions in ("HEAD~1..HEAD", "HEAD~2..HEAD"):
        found = collect_statistics(folder.repository, log, revisions, StatisticsKey.AGENT)
        lines = {row.key: row.written.total() for row in found.rows}
        assert lines == {"claude": 2 if revisions.startswith("HEAD~1") else 4, "(unknown)": 1}


@pytest.mark.slow
def test_statistics_of_a_thousand_commits_take_less_than_five_seconds(log: Decklog, tmp_path: Path) -> None:
    folder = TextFolder(tmp_path / "repo")
    long_history(folder, 1000, 50)
    repo = folder.repository
    commits = folder.git("rev-list", "--reverse", "HEAD").split()
    session = RecordedSession(log, folder, "claude", "s1")
    known: dict[str, str] = {}
    changed = [(commit, f"f{number % 50}") for number, commit in enumerate(commits)]
    blobs = repo.existing([f"{commit}:{path}" for commit, path in changed])
    for (_, path), blob in zip(changed, blobs, strict=True):
        log.edits.record(
            repo.identity, path, old_blob=known.get(path), new_blob=blob, session=session.name, run_id=session.run_id
        )
        known[path] = str(blob)
    # CPU time, of git too: other tests run at the same time.
    begun = sum(os.times()[:4])
    found = collect_statistics(repo, log, "HEAD", StatisticsKey.AGENT)
    took = sum(os.times()[:4]) - begun
    assert [(row.key, row.written.total(), row.kept.total()) for row in found.rows] == [("claude", 3000, 3000)]
    assert took < 5


def passed(log: Decklog, base: str, head: str, patch: str) -> None:
    """Record that the gate let a change pass."""
    run = log.runs.start("Review").id
    log.reviews.record(run, ReviewVerdict.PASS, base=base, head=head, tree=head, patch=patch, settings="s")


def test_lines_of_agents_are_unreviewed_until_a_review_has_their_commits(log: Decklog, folder: TextFolder) -> None:
    work_of_four(log, folder)
    names = [folder.git("rev-parse", f"HEAD~{back}") for back in (4, 3, 2)]

    def unreviewed() -> dict[str, int]:
        found = collect_statistics(folder.repository, log, "HEAD~4..HEAD", StatisticsKey.AGENT)
        return {row.key: row.unreviewed for row in [*found.rows, found.total]}

    assert unreviewed() == {"claude": 3, "codex": 2, "(person)": 0, "(unknown)": 0, "total": 5}
    log.reviews.record(
        log.runs.start("Review").id, ReviewVerdict.BLOCK, base=names[0], head=names[2], tree="t", patch="p", settings="s"
    )
    assert unreviewed()["total"] == 5
    passed(log, names[0], names[1], "p")
    assert unreviewed() == {"claude": 0, "codex": 2, "(person)": 0, "(unknown)": 0, "total": 2}
    found = collect_statistics(folder.repository, log, "HEAD~4..HEAD", StatisticsKey.AGENT)
    assert found.as_markdown().endswith("\n\nNot reviewed: 2 of 5 lines by agents\n")
    assert not explain_commit(folder.repository, log, names[2]).is_reviewed
    passed(log, names[0], names[2], "p")
    assert explain_commit(folder.repository, log, names[2]).is_reviewed
    assert "Not reviewed" not in collect_statistics(folder.repository, log, "HEAD~4..HEAD", StatisticsKey.AGENT).as_markdown()


def test_a_reviewed_change_stays_reviewed_when_it_is_squashed_onto_another_commit(log: Decklog, folder: TextFolder) -> None:
    base = folder.git("rev-parse", "HEAD")
    work_of_four(log, folder)
    head = folder.git("rev-parse", "HEAD")
    repository = Repository.find(folder.folder, folder.folder / ".git" / "state")
    passed(log, base, head, Change(repository, base, head).patch)
    folder.git("checkout", "-q", "-b", "other", base)
    folder.commit("Base", c="new\n")
    folder.git("merge", "-q", "--squash", head)
    folder.commit("All at once")
    assert explain_commit(folder.repository, log, "HEAD").is_reviewed
    assert not explain_commit(folder.repository, log, "HEAD~1").is_reviewed
    # Without the reviewed commits themselves.
    folder.git("branch", "-q", "-D", "main")
    assert explain_commit(folder.repository, log, "HEAD").is_reviewed
