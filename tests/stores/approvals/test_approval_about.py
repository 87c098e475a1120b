"""An approval shows the exact thing that it is about, and says how far that can be trusted."""

from collections.abc import Callable
from hashlib import sha256

import pytest

from decklog import Damaged, Decklog, Invalid
from decklog.transfer.move import Move
from tests.db.tampering import PostgresVictim, SqliteVictim

SECRET = "ghp_" + "A1b2C3d4E5f6" * 3


@pytest.mark.parametrize(
    ("about", "content"),
    [("git push", "git push"), ({"b": 1, "a": "ü"}, '{"a":"ü","b":1}'), (b"+ a line\n", "+ a line\n"), ([], "[]"), ("", "")],
    ids=["text", "JSON", "bytes", "an empty list", "an empty text"],
)
def test_what_was_asked_about_is_shown_and_its_digest_matches(log: Decklog, run_id: str, about: object, content: str) -> None:
    asked = log.approvals.ask(run_id, "May I?", by="ada", about=about)
    shown = log.approvals.show(asked.id)
    assert shown["about"] == {"check": "matches", "content": content, "encoding": "utf-8"}
    assert sha256(content.encode()).hexdigest() == asked.subject_digest == asked.about_digest
    assert log.approvals.decide(asked.id, "granted", by="bo").state == "granted"  # type: ignore[arg-type]


def test_bytes_that_are_no_text_are_shown_as_base64(log: Decklog, run_id: str) -> None:
    asked = log.approvals.ask(run_id, "May I?", by="ada", about=b"\xff\x00")
    assert log.approvals.show(asked.id)["about"] == {"check": "matches", "content": "/wA=", "encoding": "base64"}


def test_secrets_are_not_kept_and_the_approval_says_so(log: Decklog, run_id: str) -> None:
    asked = log.approvals.ask(run_id, "May I?", by="ada", about=f"curl -H 'token: {SECRET}'")
    about = log.approvals.show(asked.id)["about"]
    assert about["check"] == "parts redacted"
    assert SECRET not in about["content"]
    assert "redacted:" in about["content"]
    assert (asked.redacted, asked.about_digest == asked.subject_digest) == (True, False)
    assert log.approvals.decide(asked.id, "granted", by="bo").state == "granted"  # type: ignore[arg-type]


def test_to_grant_what_is_not_in_the_log_takes_its_digest(log: Decklog, run_id: str) -> None:
    digest = sha256(b"elsewhere").hexdigest()
    asked = log.approvals.ask(run_id, "May I?", by="ada", subject_digest=digest)
    assert log.approvals.show(asked.id)["about"]["check"] == "not in the log"
    with pytest.raises(Invalid, match="not in the log") as refused:
        log.approvals.decide(asked.id, "granted", by="bo")  # type: ignore[arg-type]
    assert refused.value.details["field"] == "subject_digest"
    assert log.approvals.decide(asked.id, "granted", by="bo", subject_digest=digest).state == "granted"  # type: ignore[arg-type]


def test_to_deny_what_is_not_in_the_log_takes_nothing(log: Decklog, run_id: str) -> None:
    asked = log.approvals.ask(run_id, "May I?", by="ada", subject_digest="0" * 64)
    assert log.approvals.decide(asked.id, "denied", by="bo").state == "denied"  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", ["show", "decide"])
def test_what_was_changed_past_decklog_is_neither_shown_nor_granted(log: Decklog, target: str, run_id: str, verb: str) -> None:
    asked = log.approvals.ask(run_id, "May I?", by="ada", about="rm -r build")
    victim = SqliteVictim(target) if log.db.engine == "sqlite" else PostgresVictim(target, log)
    assert victim.change(f"update blobs set bytes = {'x' if log.db.engine == 'sqlite' else ''}'6162' where true") == 1
    calls: dict[str, Callable[[], object]] = {
        "show": lambda: log.approvals.show(asked.id),
        "decide": lambda: log.approvals.decide(asked.id, "granted", by="bo"),  # type: ignore[arg-type]
    }
    with pytest.raises(Damaged, match="was changed"):
        calls[verb]()
    assert not log.journal.verify().ok


def test_the_thing_goes_with_a_move_and_a_fork(log: Decklog, run_id: str, tmp_path: object) -> None:
    asked = log.approvals.ask(run_id, "May I?", by="ada", about="the diff")
    log.approvals.decide(asked.id, "denied", by="bo")  # type: ignore[arg-type]
    log.runs.fork(run_id, new_run_id="run_2")
    [copy] = log.approvals.find("run_2")
    assert log.approvals.show(copy.id)["about"]["content"] == "the diff"
    with Decklog.open(f"{tmp_path}/other.db", clock=log.clock) as other:
        Move(log, other).run()
        assert other.approvals.show(asked.id)["about"]["check"] == "matches"
        assert other.journal.verify().ok
