"""What a recovery says must be so: nothing is called lost that is there, and nothing is believed that was damaged."""

import random
from pathlib import Path
from typing import Any

import apsw
import pytest

from decklog import Decklog, ManualClock
from decklog.core.errors import Invalid
from decklog.transfer.recover.rebuild import FROM_TABLE
from decklog.transfer.recover.recovery import Recovered, recover
from tests.transfer.recover.truth import Truth


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A run with records after its first entries, in a file without a write-ahead log."""
    path = tmp_path / "log.db"
    with Decklog.open(path, clock=ManualClock()) as log:
        log.runs.start("x", run_id="run_3")
        log.journal.append("run_3", "the entry that will be damaged MARK")
        for number in range(20):
            log.tasks.add("run_3", f"title {number}", task_id=f"t{number}")
            log.ledger.charge("m", input_tokens=1, cost_microdollars=1, run_id="run_3", key=f"c{number}")
            log.states.save("run_3", "s", {"number": number})
        with log.tasks.claim("run_3", worker="w") as claim:
            claim.finish("done")
        log.journal.append("run_3", "the last one")
    Path(f"{path}-wal").touch()
    return path


@pytest.fixture
def truth(path: Path, tmp_path: Path) -> Truth:
    return Truth.of(path, tmp_path)


def change(path: Path, old: bytes, new: bytes) -> None:
    assert len(old) == len(new)
    assert old in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(old, new))


def recovered(path: Path) -> tuple[Recovered, Path]:
    new = path.with_name("new.db")
    return recover(str(path), str(new)), new


def rows(path: Path, sql: str) -> list[Any]:
    connection = apsw.Connection(str(path))
    found: list[Any] = connection.execute(sql).fetchall()
    connection.close()
    return found


def flip(path: Path, place: int, bit: int = 1) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    path.write_bytes(content)


def places_of_entries(path: Path) -> list[int]:
    """Where the bytes of the first entries lie: from the end of the page that holds them, which is where rows begin."""
    content = path.read_bytes()
    page = content.index(b"the entry that will be damaged MARK") // 4096
    return list(range(page * 4096 + 2000, (page + 1) * 4096))


def test_one_flipped_bit_in_the_name_of_an_entrys_stream_costs_nothing(path: Path, truth: Truth) -> None:
    [(seq,)] = rows(path, "select seq from entries where kind = 'change' and record_table = 'tasks' and seq > 60 limit 1")
    content = path.read_bytes()
    [(hash,)] = rows(path, f"select hash from entries where seq = {seq}")
    flip(path, content.rindex(b"run_3", 0, content.index(bytes.fromhex(hash))) + 1)
    report, new = recovered(path)
    assert [(stream.stream, stream.missing, stream.altered) for stream in report.streams] == [("run_3", [], [])]
    assert truth.found_in(new) == (set(truth.content), 0)


@pytest.mark.parametrize("seed", range(8))
def test_one_flipped_bit_in_a_page_of_entries_costs_nothing(path: Path, truth: Truth, seed: int) -> None:
    chance = random.Random(seed)
    flip(path, chance.choice(places_of_entries(path)), chance.randrange(8))
    report, new = recovered(path)
    if report.whole:
        return  # the bit meant nothing
    assert truth.found_in(new) == (set(truth.content), 0)
    assert [(stream.missing, stream.altered, stream.from_tables) for stream in report.streams] == [([], [], 0)]


@pytest.mark.slow
def test_an_entry_that_is_damaged_beyond_mending_is_kept_as_it_reads_and_nothing_else_is_touched(
    path: Path, truth: Truth
) -> None:
    change(path, b"damaged MARK", b"DAMAGED!MARK")
    report, new = recovered(path)
    [stream] = report.streams
    assert (stream.missing, stream.altered, stream.from_tables, stream.unproven) == ([], [2], 0, 0)
    found, mark_out_of_order = truth.found_in(new)
    assert (set(truth.content) - found, mark_out_of_order) == ({("run_3", 2)}, 0)
    with Decklog.open(new) as log:
        kept = log.journal.get("run_3", 2)
        assert (kept.subtype, kept.payload["altered"]["body"]) == ("recovered", "the entry that will be DAMAGED!MARK")
        assert log.journal.verify().ok
    assert rows(new, f"select 1 from entries where body = '{FROM_TABLE}'") == []


def test_bytes_that_are_no_text_are_no_reason_to_stop(path: Path, truth: Truth) -> None:
    change(path, b"damaged MARK", b"damaged \xff\xfe\xfd\xfc")
    report, new = recovered(path)
    assert report.streams[0].altered == [2]
    assert set(truth.content) - truth.found_in(new)[0] == {("run_3", 2)}


def test_only_records_whose_entries_are_lost_are_said_to_come_from_their_tables(path: Path, truth: Truth) -> None:
    content = bytearray(path.read_bytes())
    while (place := content.find(b'"title":"title 9"')) >= 0:
        content[place // 4096 * 4096 : place // 4096 * 4096 + 4096] = bytes(4096)
    path.write_bytes(content)
    report, new = recovered(path)
    found, _ = truth.found_in(new)
    lost = {values[13:15] for place, values in truth.content.items() if place not in found}
    told = set(rows(new, f"select record_table, record_id from entries where body = '{FROM_TABLE}'"))
    assert told
    assert told <= lost
    [stream] = report.streams
    assert {(stream.stream, seq) for low, high in stream.missing for seq in range(low or 0, (high or 0) + 1)} == set(
        truth.content
    ) - found


def test_a_row_whose_time_alone_was_damaged_is_not_taken_for_a_newer_one(path: Path) -> None:
    [(at,)] = rows(path, "select updated_at from tasks where id = 't7'")
    root = rows(path, "select rootpage from sqlite_schema where name = 'tasks'")[0][0]
    pages = [page for (page,) in rows(path, "select pageno from dbstat where name = 'tasks'")]
    assert root in pages
    content = bytearray(path.read_bytes())
    for page in pages:
        start = content.find(b"title 7", (page - 1) * 4096, page * 4096)
        if start >= 0:
            place = content.index(at.encode(), start)
            content[place : place + 4] = b"2999"
    path.write_bytes(content)
    report, new = recovered(path)
    assert [(stream.missing, stream.from_tables) for stream in report.streams] == [([], 0)]
    assert rows(new, "select updated_at from tasks where id = 't7'") == [(at,)]


def test_what_the_owner_proved_and_is_lost_is_named_and_everything_else_comes_back(tmp_path: Path) -> None:
    path, password = tmp_path / "log.db", "correct horse " + "battery staple"
    with Decklog.open(path) as log:
        log.runs.start("x", run_id="run_1")
        with log.proving(password=password):
            log.trust.bind("ana", "slack", password=password)
            log.budgets.set("run", scope_id="run_1", limit_microdollars=5000)
    Path(f"{path}-wal").touch()
    truth = Truth.of(path, tmp_path)
    [(hash,)] = rows(path, "select hash from entries where stream = '@desk' and record_table = 'proofs' limit 1")
    change(path, bytes.fromhex(hash)[:20], b"z" * 20)
    report, new = recovered(path)
    assert len(set(truth.content) - truth.found_in(new)[0]) <= 1
    assert bool(report.problems) == (not Decklog.open(new).journal.verify().ok)


@pytest.mark.parametrize("place", ["file", "to"])
def test_a_server_is_plainly_refused_and_its_password_not_shown(path: Path, place: str) -> None:
    address = "postgresql://ana:hunter2@localhost/log"
    given = {"file": str(path), "to": str(path.with_name("new.db"))} | {place: address}
    with pytest.raises(Invalid, match="not from or into a server") as refused:
        recover(given["file"], given["to"])
    assert "hunter2" not in str(refused.value)
