"""What is not whole in the target is found, whatever became of it on the way; a move that was killed goes on from any point."""

import signal
from pathlib import Path

import pytest

from decklog import Decklog, ManualClock
from decklog.core.errors import Damaged
from decklog.journal.blobs import store_blob
from decklog.transfer.move import Move
from tests.db.processes import alone
from tests.transfer.conftest import Filled, exported

# Takes the place of a row: SQLite and PostgreSQL check a statement's keys row by row, so they pass through a free one.
SWAP = [
    "update entries set pos = pos + 1000, seq = seq + 1000 where stream = 'run_1' and seq = 100",
    "update entries set pos = pos - 1, seq = seq - 1 where stream = 'run_1' and seq = 101",
    "update entries set pos = pos - 999, seq = seq - 999 where stream = 'run_1' and seq = 1100",
]
TAMPERED = {
    "missing": (["delete from entries where stream = 'run_1' and seq = 100"], "run_1:100 entries 100 to 100 are missing"),
    "the last one missing": (
        ["delete from entries where stream = 'run_1' and seq = 300"],
        "run_1 (ended differently|does not have its last entry)",
    ),
    "altered": (["update entries set agent = 'another' where stream = 'run_1' and seq = 100"], "run_1:100 .* its hash"),
    "another text": (["update entries set body = 'another' where stream = 'run_1' and seq = 100"], "run_1:100 .* its hash"),
    "in another place": (SWAP, "run_1:100 .* its hash"),
    "a stream missing": (
        ["delete from entries where stream <> 'run_1'", "delete from streams where name <> 'run_1'"],
        "ended differently|is gone",
    ),
    "a text dropped": (
        ["update entries set body_digest = '{digest}', body = null where stream = 'run_1' and seq = 100"],
        "run_1:100 the body is gone",
    ),
    "a blob missing": (["delete from blobs"], "the body is gone"),
    "a blob altered": (["update blobs set bytes = digest"], "blob .* its digest"),
    "a row altered": (["update tasks set title = 'another' where id = 'run_1-t5'"], "run_1-t5 differs .* title"),
    "a row missing": (["delete from agents where run_id = 'run_1'"], "agents .* is gone"),
}


def tamper(log: Decklog, statements: list[str]) -> None:
    """Change a log behind Decklog's back, with everything out of the way that would refuse it."""
    from decklog.journal import chain

    body = next(entry.body for entry in log.journal.find("run_1", limit=300) if entry.seq == 100)
    if log.db.engine == "postgres":
        free = ["alter table entries disable trigger all", "set local session_replication_role = replica"]
        statements = [one.replace("bytes = digest", "bytes = convert_to(digest, 'UTF8')") for one in statements]
    else:
        free = [f"drop trigger {name}" for name in ("entries_never_go", "entries_never_change", "entries_keep_digests")]
        free += ["pragma defer_foreign_keys = on"]
        statements = [one.replace("bytes = digest", "bytes = cast(digest as blob)") for one in statements]
    with log.transaction():
        for sql in [*free, *statements]:
            log.db.rows(sql.replace("{digest}", str(chain.digest(body))), {})


@pytest.mark.slow
@pytest.mark.parametrize("how", TAMPERED)
def test_what_is_wrong_in_the_target_is_found_and_named(log: Decklog, source: Decklog, how: str) -> None:
    statements, says = TAMPERED[how]

    def meanwhile(what: str, _done: int, _whole: int) -> None:
        if what == "verifying the target":
            tamper(log, statements)

    with pytest.raises(Damaged, match=says):
        Move(source, log, meanwhile).run()


def test_a_blob_that_no_entry_names_must_arrive_too(log: Decklog, source: Decklog) -> None:
    digest = source.db.write(lambda: store_blob(source.db, b"what a record refers to"))

    def meanwhile(what: str, _done: int, _whole: int) -> None:
        if what == "verifying the target":
            log.db.write(lambda: log.db.rows("delete from blobs where digest = :digest", {"digest": digest}))

    with pytest.raises(Damaged, match=f"blob {digest} did not arrive"):
        Move(source, log, meanwhile).run()


def test_what_the_source_gets_while_the_target_is_proven_is_no_loss(log: Decklog, source: Decklog) -> None:
    def meanwhile(what: str, _done: int, _whole: int) -> None:
        if what == "verifying the target":
            source.journal.append("run_1", "long and new " * 10_000)

    assert Move(source, log, meanwhile).run().verified == 360


def test_a_source_whose_chain_is_broken_is_not_carried_on(log: Decklog, source: Decklog) -> None:
    tamper(source, TAMPERED["altered"][0])
    with pytest.raises(Damaged, match="run_1:100"):
        Move(source, log).run()
    assert log.journal.verify().ok


def test_a_text_that_only_the_source_dropped_is_no_loss(log: Decklog, source: Decklog) -> None:
    Move(source, log).run()
    tamper(source, TAMPERED["a text dropped"][0])
    assert Move(source, log).run().verified == 360


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """A log that takes three steps to move: the first hundred entries, the next five thousand and the rest."""
    return Filled(tmp_path_factory.mktemp("large") / "source.db", run_1=5_300, other=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("phase", "calls"), [("moving blobs", 1), ("moving entries", 1), ("moving entries", 2), ("verifying the target", 1)]
)
def test_a_move_that_is_killed_in_any_phase_goes_on(
    phase: str, calls: int, large: Filled, tmp_path: Path, target: str, clock: ManualClock
) -> None:
    large.copied(tmp_path / "source.db", clock)
    died = alone("move_until_killed", str(tmp_path / "source.db"), target, phase, calls)
    assert died == {"error": f"ended with status {signal.SIGKILL.value}"}
    with Decklog.open(tmp_path / "source.db", read_only=True) as source, Decklog.open(target, clock=clock) as log:
        assert log.journal.verify().ok
        there = sum(head["seq"] for head in log.journal.heads())
        moved = Move(source, log).run()
        assert (moved.already, moved.entries, moved.verified) == (there, 5_360 - there, 5_360)
        assert exported(log, tmp_path / "1") == exported(source, tmp_path / "2")


def test_what_was_moved_is_found_whether_or_not_it_was_indexed(source: Decklog, postgres_url: str) -> None:
    with Decklog.open(postgres_url) as log:
        Move(source, log).run()
    with Decklog.open(postgres_url, read_only=True) as log:
        looked_through = log.journal.search("lexer", stream="run_1", limit=50)
    with Decklog.open(postgres_url) as log:
        assert [entry.id for entry in log.journal.search("lexer", stream="run_1", limit=50)] == [one.id for one in looked_through]
        assert looked_through
