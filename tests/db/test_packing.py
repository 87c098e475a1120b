"""Long values are compressed in a SQLite file; readers see no difference."""

import random
from pathlib import Path

import pytest

from decklog import Damaged, Decklog
from decklog.db.packing import compress_bytes, decompress_bytes, decompress_start
from decklog.transfer.move import Move
from tests.every import every

OUTPUT = "".join(
    f"[{number}/2311] Building CXX object src/parser/CMakeFiles/lexer.dir/part_{number}.cc.o\n" for number in range(1200)
)


def stored(log: Decklog, digest: str | None) -> tuple[int, int]:
    """Return the size of a value and its stored size."""
    sizes = {"sqlite": "length(bytes)", "postgres": "pg_column_size(bytes)"}[log.db.engine]
    row = log.db.read(lambda: log.db.one(f"select size, {sizes} from blobs where digest = :digest", {"digest": digest}))
    assert row is not None
    return row[0], row[1]


@every("size", [0, 1, 511, 512, 20_000, 90_000])
def test_packed_values_are_unpacked(size: int) -> None:
    noise = random.Random(size).randbytes(size)
    for content in (b"a" * size, noise, OUTPUT.encode()[:size], noise[: size // 2] + b"a" * (size - size // 2)):
        assert decompress_bytes(compress_bytes(content), len(content)) == content
    assert compress_bytes(noise) is noise, "what does not get shorter by a fifth is kept as it is"


def test_damaged_packed_value_is_returned_unchanged() -> None:
    content = OUTPUT.encode()
    short = compress_bytes(content)
    for damaged in (short[:-1], short + b"\0", short[:100] + b"\0" + short[101:], b"", b"plain"):
        assert decompress_bytes(damaged, len(content)) == damaged
    assert decompress_bytes(short, len(content) - 1) == short, "a length that is too small fills no memory"
    assert decompress_start(short, 20) == content[:20]


def test_a_long_output_is_kept_at_a_third_of_its_length_at_most(log: Decklog, run_id: str) -> None:
    entry = log.journal.append(run_id, OUTPUT, kind="tool")
    size, stored_size = stored(log, entry.body_digest)
    assert size == len(OUTPUT)
    assert stored_size * 3 < size
    assert log.journal.get(entry.id).body == OUTPUT
    assert log.journal.verify().ok


def test_uncompressed_value_can_be_read(log: Decklog, run_id: str) -> None:
    entry = log.journal.append(run_id, OUTPUT, kind="tool")
    plain = {"digest": entry.body_digest, "plain": OUTPUT.encode()}
    log.db.write(lambda: log.db.count("update blobs set bytes = :plain where digest = :digest", plain))
    assert log.journal.get(entry.id).body == OUTPUT
    assert log.journal.append(run_id, OUTPUT, kind="tool").body_digest == entry.body_digest
    assert log.journal.verify().ok


def test_a_packed_value_goes_with_a_move_and_is_read_in_sql(log: Decklog, run_id: str, tmp_path: Path) -> None:
    entry = log.journal.append(run_id, OUTPUT, kind="tool")
    with Decklog.open(tmp_path / "other.db") as other:
        Move(log, other).run()
        assert other.journal.get(entry.id).body == OUTPUT
        assert other.journal.verify().ok
        read = "select cast(plain_bytes(bytes, size) as text) from blobs where digest = :digest"
        assert other.db.read(lambda: other.db.one(read, {"digest": entry.body_digest})) == (OUTPUT,)


@pytest.mark.slow
def test_changed_byte_of_a_packed_value_is_found(log: Decklog, run_id: str) -> None:
    entry = log.journal.append(run_id, OUTPUT, kind="tool")
    row = log.db.read(lambda: log.db.one("select bytes from blobs", {}))
    assert row is not None
    for place in (0, 2, 700, -3):
        changed = bytearray(row[0])
        changed[place] ^= 0xD5
        put(log, bytes(changed))
        (problem,) = log.journal.verify().problems
        assert (problem.table, problem.record_id) == ("blobs", entry.body_digest)
        with pytest.raises(Damaged, match="not valid text"):
            log.journal.get(entry.id)


def put(log: Decklog, changed: bytes) -> None:
    log.db.write(lambda: log.db.count("update blobs set bytes = :changed", {"changed": changed}))
