from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from decklog.core.errors import TooLarge
from decklog.records.record import find_all
from decklog.stores.artifacts.artifacts import media_type_of
from tests.every import every

PICTURE = b"\x89PNG\r\n\x1a\n\x00\x01\xff"


def encoded(content: bytes) -> str:
    return b64encode(content).decode()


def test_an_artifact_comes_back_as_it_was_added(log: Decklog, run_id: str, clock: ManualClock) -> None:
    added = log.artifacts.add(
        run_id,
        "report",
        "out/report.md",
        content="# Done\n",
        role="checker",
        task_id="task_1",
        metadata={"pages": 1},
    )
    assert log.artifacts.get(added.id) == added
    assert added.id.startswith("art_")
    assert (added.kind, added.path, added.media_type, added.role) == ("report", "out/report.md", "text/markdown", "checker")
    assert (added.digest, added.size) == (sha256(b"# Done\n").hexdigest(), 7)
    assert (added.metadata, added.created_at, added.number) == ({"pages": 1}, clock.now(), 1)


def test_text_and_bytes_come_back(log: Decklog, run_id: str) -> None:
    text = log.artifacts.add(run_id, "note", "note", content="ü\n")
    got = log.artifacts.content(text.id)
    assert (got["encoding"], got["content"], got["size"], got["media_type"]) == ("utf-8", "ü\n", 3, "text/plain")
    picture = log.artifacts.add(run_id, "screenshot", "shot.png", content_base64=encoded(PICTURE))
    got = log.artifacts.content(picture.id)
    assert (got["encoding"], got["content"], got["media_type"]) == ("base64", encoded(PICTURE), "image/png")
    assert log.artifacts.content_bytes(picture.id) == PICTURE
    same = log.artifacts.add(run_id, "screenshot", "shot.png", content_base64=encoded(PICTURE))
    assert same.already
    assert same == picture


def test_a_file_that_is_only_named_has_no_content(log: Decklog, run_id: str) -> None:
    named = log.artifacts.add(run_id, "log", "build.log")
    assert (named.digest, named.size) == (None, None)
    with pytest.raises(NotFound, match="not kept"):
        log.artifacts.content(named.id)
    digested = log.artifacts.add(run_id, "binary", "a.out", digest=sha256(b"x").hexdigest().upper(), size=1)
    assert (digested.digest, digested.size) == (sha256(b"x").hexdigest(), 1)
    with pytest.raises(NotFound):
        log.artifacts.content_bytes(digested.id)
    log.artifacts.add(run_id, "binary", "a.out", content_base64=encoded(b"x"))
    assert log.artifacts.content_bytes(digested.id) == b"x"


def test_the_same_run_path_and_digest_is_one_artifact(log: Decklog, run_id: str) -> None:
    first = log.artifacts.add(run_id, "report", "r.md", content="one")
    again = log.artifacts.add(run_id, "report", "r.md", content="one")
    assert again == first
    assert again.already
    other = log.runs.start("another", run_id="run_2").id
    ids = {
        first.id,
        log.artifacts.add(run_id, "report", "r.md", content="two").id,
        log.artifacts.add(run_id, "report", "other.md", content="one").id,
        log.artifacts.add(other, "report", "r.md", content="one").id,
    }
    assert len(ids) == 4


def test_files_that_are_only_named_are_never_taken_for_the_same(log: Decklog, run_id: str) -> None:
    first = log.artifacts.add(run_id, "log", "build.log", role="strategy")
    second = log.artifacts.add(run_id, "log", "build.log", role="checker")
    assert first.id != second.id
    assert [each.id for each in log.artifacts.find(run_id=run_id, oldest_first=True)] == [first.id, second.id]


def test_an_imported_artifact_keeps_its_id(log: Decklog, run_id: str) -> None:
    at = datetime(2025, 1, 1, tzinfo=UTC)
    first = log.artifacts.add(run_id, "log", "build.log", artifact_id="0a1b", created_at=at)
    assert (first.id, first.created_at) == ("0a1b", at)
    assert log.artifacts.add(run_id, "log", "build.log", artifact_id="0a1b").already
    with pytest.raises(Conflict, match="another file"):
        log.artifacts.add(run_id, "log", "other.log", artifact_id="0a1b")


def test_filters_find_what_they_name_newest_first(log: Decklog, run_id: str, clock: ManualClock) -> None:
    other = log.runs.start("another", run_id="run_2").id
    for number in range(6):
        log.artifacts.add(
            run_id if number % 2 else other,
            "log" if number < 3 else "report",
            f"{number}.txt",
            content=str(number),
            role=f"role {number % 3}",
            task_id=f"t{number}",
        )
    assert [each.path for each in log.artifacts.find(run_id=run_id)] == ["5.txt", "3.txt", "1.txt"]
    assert len(log.artifacts.find(kind="log")) == 3
    assert len(log.artifacts.find(role="role 2")) == 2
    assert [each.path for each in log.artifacts.find(task_id="t4")] == ["4.txt"]
    assert [each.path for each in log.artifacts.find(path="2.txt")] == ["2.txt"]
    assert [each.path for each in log.artifacts.find(digest=sha256(b"2").hexdigest())] == ["2.txt"]
    seen = [artifact.id for artifact in find_all(log.artifacts.find, limit=4)]
    assert len(set(seen)) == len(seen) == 6


def test_a_secret_in_a_text_is_not_kept(log: Decklog, run_id: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    text = f"token: {secret}\n"
    for added in (
        log.artifacts.add(run_id, "log", "a.log", content=text),
        log.artifacts.add(run_id, "log", "b.log", content_base64=encoded(text.encode())),
    ):
        assert added.redacted
        content = log.artifacts.content_bytes(added.id)
        assert secret.encode() not in content
        assert (added.digest, added.size) == (sha256(content).hexdigest(), len(content))
    assert log.artifacts.add(run_id, "log", "a.log", content=text).already


@every(
    "bad",
    [
        {"kind": " "},
        {"path": ""},
        {"path": "x" * 4097},
        {"path": "a\x00b"},
        {"content": "x", "content_base64": "eA=="},
        {"content": "half \ud800"},
        {"content_base64": "not base64!"},
        {"content": "x", "digest": "0" * 64},
        {"digest": "abc"},
        {"size": -1},
        {"metadata": {"x": float("nan")}},
    ],
)
def test_a_bad_artifact_is_refused_and_nothing_is_written(log: Decklog, run_id: str, bad: dict[str, Any]) -> None:
    given: dict[str, Any] = {"kind": "log", "path": "a.log"}
    with pytest.raises(Invalid):
        log.artifacts.add(run_id, **(given | bad))
    assert log.artifacts.find() == []
    assert len(log.journal.find(run_id)) == 1


def test_unknown_things_are_not_found(log: Decklog, run_id: str) -> None:
    with pytest.raises(NotFound):
        log.artifacts.add("nobody", "log", "a.log")
    with pytest.raises(NotFound):
        log.artifacts.get("art_nothing")
    with pytest.raises(NotFound):
        log.artifacts.content("art_nothing")


def test_bytes_over_the_limit_are_refused(target: str) -> None:
    with Decklog.open(target, limit_bytes=1000) as log:
        log.runs.start("small", run_id="r")
        log.artifacts.add("r", "blob", "a", content_base64=encoded(PICTURE + bytes(900)))
        with pytest.raises(TooLarge):
            log.artifacts.add("r", "blob", "b", content_base64=encoded(bytes(1001)))
        with pytest.raises(TooLarge):
            log.artifacts.add("r", "text", "c", content="x" * 1001)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/a.py", "text/x-python"),
        ("src/a.ts", "text/typescript"),
        ("a.PATCH", "text/x-diff"),
        ("a.tar/Makefile", "application/octet-stream"),
        ("x.png", "image/png"),
        ("conf.yaml", "application/yaml"),
    ],
)
def test_a_media_type_is_guessed_from_the_path(path: str, expected: str) -> None:
    assert media_type_of(path) == expected


def test_a_media_type_that_is_given_is_kept(log: Decklog, run_id: str) -> None:
    assert log.artifacts.add(run_id, "x", "a.py", media_type="text/plain").media_type == "text/plain"
