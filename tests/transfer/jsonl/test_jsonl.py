import json
import os
from pathlib import Path

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock
from decklog.core.errors import Damaged, DecklogError, TooLarge
from decklog.journal import chain
from decklog.records.values import to_json
from decklog.transfer import jsonl as jsonl_load
from decklog.transfer.jsonl import JsonlExport, JsonlImport, stream_file_name
from tests.transfer.conftest import exported, fill


def test_a_log_that_went_through_files_is_the_same_to_the_byte(log: Decklog, source: Decklog, tmp_path: Path) -> None:
    before = exported(source, tmp_path / "before")
    result = JsonlImport(log, str(tmp_path / "before")).run()
    assert (result.streams, result.entries, result.already) == (2, 360, 0)
    assert exported(log, tmp_path / "after") == before
    assert log.journal.verify().as_dict() == source.journal.verify().as_dict()
    assert log.tasks.find("run_1", limit=100) == source.tasks.find("run_1", limit=100)


def test_every_line_is_an_entry_with_sorted_keys_and_blobs_are_named_by_their_digest(source: Decklog, tmp_path: Path) -> None:
    files = exported(source, tmp_path / "out")
    lines = files["run_1.jsonl"].split(b"\n")
    assert [json.loads(line)["seq"] for line in lines[:-1]] == list(range(1, 301))
    assert all(list(json.loads(line)) == sorted(json.loads(line)) for line in lines[:-1])
    assert sum(name.startswith("blobs/") for name in files) == 1


def test_a_second_import_adds_nothing_and_a_longer_file_only_what_is_new(
    log: Decklog, source: Decklog, tmp_path: Path, clock: ManualClock
) -> None:
    exported(source, tmp_path / "out")
    JsonlImport(log, str(tmp_path / "out")).run()
    assert JsonlImport(log, str(tmp_path / "out")).run().entries == 0
    source.journal.append("run_1", "one more")
    exported(source, tmp_path / "out")
    again = JsonlImport(log, str(tmp_path / "out")).run()
    assert (again.entries, again.already) == (1, 360)


def test_one_run_is_exported_with_only_the_blobs_it_names(source: Decklog, tmp_path: Path) -> None:
    source.runs.start("no blobs here", run_id="bare")
    result = JsonlExport(source, str(tmp_path / "bare")).run("bare")
    assert (result.streams, result.blobs) == (1, 0)
    assert JsonlExport(source, str(tmp_path / "one")).run("run_1").blobs == 1
    assert sorted(os.listdir(tmp_path / "one")) == ["blobs", "run_1.jsonl"]


def test_two_logs_with_different_runs_merge_in_one_folder(log: Decklog, tmp_path: Path, clock: ManualClock) -> None:
    for name in ("one", "two"):
        with Decklog.open(tmp_path / f"{name}.db", clock=clock) as other:
            fill(other, clock, run=name)
            exported(other, tmp_path / "shared")
    assert JsonlImport(log, str(tmp_path / "shared")).run().streams == 2
    assert log.journal.verify().ok


def test_an_export_never_writes_over_entries_that_the_log_does_not_have(
    source: Decklog, tmp_path: Path, clock: ManualClock
) -> None:
    source.journal.append("run_1", "only here")
    longer = exported(source, tmp_path / "out")
    with Decklog.open(tmp_path / "other.db", clock=clock) as other:
        fill(other, clock)
        with pytest.raises(Conflict, match="does not have"):
            JsonlExport(other, str(tmp_path / "out")).run()
    assert (tmp_path / "out" / "run_1.jsonl").read_bytes() == longer["run_1.jsonl"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "spoil", "error", "says"),
    [
        (7, lambda _: b"{not json", Invalid, "no entry"),
        (7, lambda _: b"[1]", Invalid, "JSON object"),
        (7, lambda _: b"[" * 100_000, Invalid, "no entry"),
        (7, lambda _: b"<<<<<<< ours", Invalid, "git conflict marker"),
        (7, lambda raw: raw.replace(b'"seq":7', b'"seq":"7"'), Invalid, "must be a number"),
        (7, lambda raw: raw.replace(b'"seq":7', b'"seq":8'), Conflict, "gap"),
        (7, lambda raw: raw.replace(b'"hash":"', b'"hash":"0'), Damaged, "hash"),
        (7, lambda raw: raw.replace(b'"kind":', b'"kin":'), Invalid, "no field kin"),
        (7, lambda raw: raw.replace(b'"at":"2026', b'"at":"9226'), Damaged, "hash"),
        (7, lambda raw: raw.replace(b'"at":"2026-', b'"at":"soon'), Invalid, "no entry"),
        (7, lambda raw: raw.replace(b'"stream":"run_1"', b'"stream":"run_2"'), Invalid, "another"),
        (7, lambda raw: raw.replace(b'"kind":"', b'"agent":"\\ud800","kind":"'), Invalid, "no entry"),
        (280, lambda raw: raw.replace(b"lexer", b"parser"), Damaged, "hash"),
    ],
)
def test_a_hostile_line_is_named_and_nothing_of_its_batch_is_kept(
    log: Decklog, source: Decklog, tmp_path: Path, line: int, spoil, error: type[DecklogError], says: str
) -> None:
    exported(source, tmp_path / "out")
    path = tmp_path / "out" / "run_1.jsonl"
    lines = path.read_bytes().split(b"\n")
    lines[line - 1] = spoil(lines[line - 1])
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(error, match=says) as caught:
        JsonlImport(log, str(tmp_path / "out")).run()
    assert f"run_1.jsonl:{line}:" in caught.value.message
    assert [head["stream"] for head in log.journal.heads()] == ["Run/../2☃"]
    assert log.journal.verify().ok


@pytest.mark.slow
def test_a_line_that_only_the_schema_refuses_leaves_nothing_of_its_batch(log: Decklog, source: Decklog, tmp_path: Path) -> None:
    exported(source, tmp_path / "out")
    path = tmp_path / "out" / "run_1.jsonl"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    place = next(place for place in reversed(range(len(lines))) if lines[place].get("record_table") == "tasks")
    del lines[place + 1 :]
    bad = lines[place]
    bad["payload"] = to_json({**json.loads(bad["payload"]), "state": "bogus"})
    bad["hash"] = chain.hash_entry(lines[place - 1]["hash"], bad)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    with pytest.raises(DecklogError) as caught:
        JsonlImport(log, str(tmp_path / "out")).run()

    assert f"run_1.jsonl:{place + 1}:" in caught.value.message
    assert "Damaged" not in type(caught.value).__name__
    assert [head["stream"] for head in log.journal.heads()] == ["Run/../2☃"]
    assert log.journal.verify().ok


def test_a_missing_line_is_a_gap_and_an_over_long_one_is_refused(
    log: Decklog, source: Decklog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exported(source, tmp_path / "out")
    path = tmp_path / "out" / "run_1.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"\n", b"\x00", 5).split(b"\x00", 5)[-1])
    with pytest.raises(Conflict, match=r"run_1\.jsonl:1: .*gap"):
        JsonlImport(log, str(tmp_path / "out")).run()
    path.write_bytes(whole)
    monkeypatch.setattr(jsonl_load, "LONGEST_LINE", 300)
    with pytest.raises(TooLarge, match="has more than 300"):
        JsonlImport(log, str(tmp_path / "out")).run()


def test_links_pipes_and_false_blobs_are_refused(log: Decklog, source: Decklog, tmp_path: Path) -> None:
    exported(source, tmp_path / "out")
    path = tmp_path / "out" / "run_1.jsonl"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Invalid, match="plain file"):
        JsonlImport(log, str(tmp_path / "out")).run()
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Invalid, match="plain file"):
        JsonlImport(log, str(tmp_path / "out")).run()
    blob = next((tmp_path / "out" / "blobs").iterdir())
    with Decklog.open(tmp_path / "fresh.db") as fresh:
        blob.write_bytes(b"something else")
        with pytest.raises(Damaged, match="does not match its digest"):
            JsonlImport(fresh, str(tmp_path / "out")).run()
        blob.rename(blob.parent / "notes.txt")
        with pytest.raises(Invalid, match="not named by a digest"):
            JsonlImport(fresh, str(tmp_path / "out")).run()


def test_names_of_streams_are_safe_and_different() -> None:
    streams = [
        "run",
        "Run",
        "RUN",
        ".",
        "..",
        "../x",
        "/etc",
        "con",
        "nul.txt",
        "-rf",
        "@desk",
        "a b",
        "a%20b",
        "é",
        "x" * 300,
        "x" * 301,
    ]
    names = [stream_file_name(stream) for stream in streams]
    assert len({name.casefold() for name in names}) == len(streams)
    for name in names:
        assert "/" not in name
        assert not name.startswith((".", "-"))
        assert len(name) < 255
    assert stream_file_name("run_06fq2v8k") == "run_06fq2v8k.jsonl"
    assert stream_file_name("@desk") == "@desk.jsonl"


def test_records_that_name_a_run_come_after_it_whatever_it_is_called(log: Decklog, tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "source.db") as source:
        source.runs.start("Named after everything else", run_id="zebra")
        source.inbox.post("ana", "How far are you?", run_id="zebra")
        source.memory.remember("task_outcomes", "It went well", run_id="zebra")
        exported(source, tmp_path / "out")
    JsonlImport(log, str(tmp_path / "out")).run()
    assert log.inbox.find("zebra")[0].body == "How far are you?"
    assert log.journal.verify().ok
