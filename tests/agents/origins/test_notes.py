"""Attribution leaves as notes and records, and comes back from them in another log."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.agents.origins.exporting import NoteExport, export_notes, what_is_published
from decklog.agents.origins.importing import import_notes, import_traces
from decklog.provenance.blame import blame_file
from decklog.provenance.formats.agent_trace import format_trace, parse_traces
from decklog.provenance.formats.git_ai import human_key, read_note, session_key, write_notes
from decklog.provenance.recording import release_old
from tests.provenance.formats import second_reader
from tests.provenance.formats.test_git_ai import EVERY_KIND
from tests.provenance.sessions import RecordedSession, record_text
from tests.provenance.text_repositories import TextFolder

BO = "Bo <bo@example.org>"


@pytest.fixture
def folder(tmp_path: Path) -> TextFolder:
    found = TextFolder(tmp_path / "repo")
    found.commit("First", a="one\ntwo\nthree\n")
    return found


@pytest.fixture
def other_log(tmp_path: Path) -> Iterator[Decklog]:
    with Decklog.open(tmp_path / "other.db") as found:
        yield found


def work(log: Decklog, folder: TextFolder) -> str:
    """Have two agents, a person and somebody unknown write lines of one commit."""
    claude = RecordedSession(log, folder, "claude", "s1")
    claude.prompt("Count further")
    claude.edit("a", "one\ntwo\nthree\nfour\nfive\n")
    RecordedSession(log, folder, "codex", "s2", model="gpt").edit("a", "one\ntwo\nthree\nfour\nfive\nsix\n")
    record_text(log, folder, "a", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n", kind="person", person=BO)
    folder.put("a", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n")
    folder.put("with blank", "free\n")
    record_text(log, folder, "with blank", "free\nmine\n", session="claude:s1", run_id=claude.run_id)
    return folder.commit("All of it")


def origins(folder: TextFolder, log: Decklog, path: str = "a") -> list[tuple[str, str | None]]:
    """Return kind and name of each line's origin."""
    found = blame_file(folder.repository, log, path, "HEAD")
    return [(line.origin.kind, " + ".join(line.origin.sessions) or line.origin.person) for line in found]


def test_note_attests_certain_lines_only_and_a_second_reader_agrees(log: Decklog, folder: TextFolder) -> None:
    commit = work(log, folder)
    summary = export_notes(folder.repository, log, "HEAD")
    text = read_note(folder.repository, commit)
    assert text is not None
    files, metadata = second_reader.read(text)
    claude, codex = session_key("claude", "s1"), session_key("codex", "s2")
    assert {line: key.partition("::")[0] for line, key in files["a"].items()} == {
        4: claude,
        5: claude,
        6: codex,
        7: human_key(BO),
    }
    assert set(files["with blank"]) == {2}
    assert metadata["sessions"][codex]["agent_id"] == {"tool": "codex", "id": "s2", "model": "gpt"}
    assert metadata["base_commit_sha"] == folder.git("rev-parse", "HEAD~1")
    assert (summary.written, summary.lines["unknown"]) == (1, 5)


def test_notes_of_stashes_are_written_and_read(log: Decklog, other_log: Decklog, folder: TextFolder) -> None:
    for number, session in enumerate(("s1", "s2")):
        RecordedSession(log, folder, "claude", session).edit("a", f"one\ntwo\nthree\nagent {number}\n")
        folder.put("a", f"one\ntwo\nthree\nagent {number}\nunknown\n")
        folder.git("stash", "push", "-q")
    summary = export_notes(folder.repository, log, None)
    assert (summary.written, summary.lines["agent"], summary.lines["unknown"]) == (2, 2, 2)
    for place, session in (("stash@{0}", "s2"), ("stash@{1}", "s1")):
        files, _ = second_reader.read(folder.git("notes", "--ref=ai-stash", "show", place) + "\n")
        assert {line: key.partition("::")[0] for line, key in files["a"].items()} == {4: session_key("claude", session)}
    assert read_note(folder.repository, folder.git("rev-parse", "stash")) is None
    assert export_notes(folder.repository, log, None).unchanged == 2
    assert import_notes(folder.repository, other_log).lines == {"agent": 2}
    folder.git("stash", "pop", "-q")
    folder.commit("Popped")
    assert origins(folder, other_log)[3:] == [("agent", "claude:s2"), ("unknown", None)]


def test_second_export_changes_nothing(log: Decklog, folder: TextFolder) -> None:
    work(log, folder)
    export_notes(folder.repository, log, "HEAD")
    before = folder.git("rev-parse", "refs/notes/ai")
    summary = export_notes(folder.repository, log, "HEAD")
    assert (summary.written, summary.unchanged, folder.git("rev-parse", "refs/notes/ai")) == (0, 1, before)


def test_note_of_another_tool_is_kept(log: Decklog, folder: TextFolder) -> None:
    commit = work(log, folder)
    write_notes(folder.repository, {commit: EVERY_KIND})
    summary = export_notes(folder.repository, log, "HEAD")
    assert (summary.written, summary.kept_of_others, read_note(folder.repository, commit)) == (0, 1, EVERY_KIND)
    assert export_notes(folder.repository, log, "HEAD", force=True).written == 1


def test_prompts_are_published_on_request_only(log: Decklog, folder: TextFolder) -> None:
    commit = work(log, folder)
    export_notes(folder.repository, log, "HEAD")
    assert "Count further" not in (read_note(folder.repository, commit) or "")
    assert what_is_published(folder.repository).prompts == 0
    export_notes(folder.repository, log, "HEAD", prompts=True)
    assert "Count further" in (read_note(folder.repository, commit) or "")
    published = what_is_published(folder.repository)
    assert (published.commits, published.sessions, published.people) == (1, {"claude:s1", "codex:s2"}, {BO})
    assert published.prompts > 0


def test_dry_run_writes_nothing(log: Decklog, folder: TextFolder) -> None:
    work(log, folder)
    assert export_notes(folder.repository, log, "HEAD", dry_run=True).written == 1
    assert folder.git("for-each-ref", "refs/notes") == ""


def test_mixed_lines_are_not_attested(log: Decklog, folder: TextFolder) -> None:
    RecordedSession(log, folder, "claude", "s1").edit("a", "one\ntwo\nthree\nfour\n", mixed_with=["codex:s2"])
    folder.commit()
    summary = export_notes(folder.repository, log, "HEAD")
    assert (summary.written, summary.lines["mixed"]) == (0, 1)


def test_merge_commit_attests_only_its_resolution(log: Decklog, folder: TextFolder) -> None:
    claude = RecordedSession(log, folder, "claude", "s1")
    folder.git("checkout", "-qb", "side")
    claude.edit("a", "one\nside\nthree\n")
    folder.commit("Side")
    folder.git("checkout", "-q", "main")
    folder.commit("Main", a="one\nmain\nthree\n")
    folder.git("merge", "-q", "side", is_checked=False)
    claude.edit("a", "one\nboth\nside\nthree\n")
    commit = folder.commit("Merge")
    export_notes(folder.repository, log, "HEAD")
    files, _ = second_reader.read(read_note(folder.repository, commit) or "")
    assert set(files["a"]) == {2}


def test_notes_give_the_same_blame_in_another_log(log: Decklog, other_log: Decklog, folder: TextFolder) -> None:
    work(log, folder)
    export_notes(folder.repository, log, "HEAD")
    summary = import_notes(folder.repository, other_log)
    assert summary.left_out == []
    for path in ("a", "with blank"):
        assert origins(folder, other_log, path) == origins(folder, log, path)
    assert other_log.runs.get("codex-s2").metadata["model"] == "gpt"
    again = import_notes(folder.repository, other_log)
    assert (again.edits, again.already) == (0, 2)


def test_imported_lines_keep_their_origin_after_a_rebase_and_gc(log: Decklog, other_log: Decklog, folder: TextFolder) -> None:
    work(log, folder)
    export_notes(folder.repository, log, "HEAD")
    import_notes(folder.repository, other_log)
    before = origins(folder, other_log)
    folder.git("checkout", "-qb", "base", "HEAD~1")
    folder.commit("Base", c="new\n")
    folder.git("rebase", "-q", "base", "main")
    folder.git("gc", "-q", "--prune=now")
    assert origins(folder, other_log) == before


def test_prune_releases_the_contents_of_imported_edits(log: Decklog, other_log: Decklog, folder: TextFolder) -> None:
    work(log, folder)
    export_notes(folder.repository, log, "HEAD")
    import_notes(folder.repository, other_log)
    names = ("Bo--bo-example-org", "claude-s1", "codex-s2")
    assert folder.git("for-each-ref", "--format=%(refname)", "refs/decklog").split() == [
        f"refs/decklog/sessions/{name}" for name in names
    ]
    release_old(other_log, str(folder.folder), other_log.clock.now(), is_applied=True)
    assert folder.git("for-each-ref", "refs/decklog") == ""


def test_hand_written_note_of_all_key_kinds_is_imported(log: Decklog, folder: TextFolder) -> None:
    folder.put("src/main.rs", "".join(f"main {number}\n" for number in range(25)))
    folder.put("src/my file.rs", "".join(f"mine {number}\n" for number in range(12)))
    folder.put("src/both.rs", "".join(f"both {number}\n" for number in range(9)))
    commit = folder.commit("Notes of another tool")
    write_notes(folder.repository, {commit: EVERY_KIND})
    assert import_notes(folder.repository, log).left_out == []
    ada = "Ada <ada@example.org>"
    main = origins(folder, log, "src/main.rs")
    assert main[0:4] == [("agent", "codex:c3")] * 4
    assert main[4:8] == [("person", ada)] * 4
    assert main[9:11] == [("unknown", None)] * 2
    assert main[20:] == [("unknown", None)] * 5
    mine = origins(folder, log, "src/my file.rs")
    assert mine == [*[("agent", "cursor:c1")] * 10, ("agent", "claude:c2"), ("unknown", None)]
    both = origins(folder, log, "src/both.rs")
    assert both[:4] == [("agent", "codex:c3")] * 2 + [("mixed", "codex:c3 + cursor:c1"), ("agent", "cursor:c1")]
    assert both[8] == ("unknown", None)


def test_file_in_which_lines_repeat_is_exact_or_unknown(log: Decklog, folder: TextFolder) -> None:
    folder.put("same", "x\n" * 9)
    commit = folder.commit()
    text = EVERY_KIND.replace("src/main.rs", "same").replace("1-4,9,12-20", "2,4").replace("5-8", "6")
    write_notes(folder.repository, {commit: text})
    import_notes(folder.repository, log)
    found = origins(folder, log, "same")
    expected = {2: ("agent", "codex:c3"), 4: ("agent", "codex:c3"), 6: ("person", "Ada <ada@example.org>")}
    assert all(one in (("unknown", None), expected.get(number)) for number, one in enumerate(found, 1))


def test_own_evidence_is_not_replaced_by_a_note(log: Decklog, folder: TextFolder) -> None:
    commit = work(log, folder)
    before = origins(folder, log)
    write_notes(folder.repository, {commit: EVERY_KIND.replace("src/main.rs", "a").replace("9,12-20", "8").replace("5-8", "5-7")})
    import_notes(folder.repository, log)
    assert before[7] == ("unknown", None)
    assert origins(folder, log) == [*before[:7], ("agent", "codex:c3")]


def test_note_that_names_lines_behind_the_end_is_left_out(log: Decklog, folder: TextFolder) -> None:
    commit = folder.commit("Short", **{"src/main.rs": "1\n"})
    write_notes(folder.repository, {commit: EVERY_KIND, folder.git("rev-parse", "HEAD~1"): "no note\n"})
    summary = import_notes(folder.repository, log)
    assert summary.edits == 0
    assert any("behind the last one" in one for one in summary.left_out)
    assert any("no line `---`" in one for one in summary.left_out)


def test_agent_trace_records_give_the_sessions_in_another_log(log: Decklog, other_log: Decklog, folder: TextFolder) -> None:
    work(log, folder)
    text = "".join(format_trace(record) for record in NoteExport(folder.repository, log).records("HEAD"))
    (record,) = [json.loads(line) for line in text.splitlines()]
    kinds = [one["contributor"]["type"] for one in record["files"][0]["conversations"]]
    assert sorted(kinds) == ["ai", "ai", "human"]
    import_traces(folder.repository, other_log, parse_traces(text))
    found = origins(folder, other_log)
    assert found[3:6] == [("agent", "claude:s1")] * 2 + [("agent", "codex:s2")]
    # The format has no names of people.
    assert found[6:] == [("unknown", None)] * 2
