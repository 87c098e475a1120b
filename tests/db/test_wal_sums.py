import random
import sqlite3
from pathlib import Path

import pytest

from decklog.db.sqlite import damage as sums
from decklog.db.sqlite.damage import WriteAheadLog


@pytest.mark.parametrize("order", ["little", "big"])
def test_checksums_told_side_by_side_are_those_told_one_by_one(order: str) -> None:
    chance = random.Random(17)
    for page_size, count in ((512, 1), (512, 7), (512, 8), (1024, 70)):
        step = sums.FRAME_HEADER_SIZE + page_size
        content = chance.randbytes(sums.HEADER_SIZE + count * step + 3)
        begins = [(chance.getrandbits(32), chance.getrandbits(32)) for _ in range(count)]
        frames = content[sums.HEADER_SIZE : sums.HEADER_SIZE + count * step]
        alone = sums._one_by_one(frames, order, step, begins)
        assert sums.checksums(memoryview(content), order, page_size, begins) == alone
        assert sums._side_by_side(frames, order, step, begins) == alone


def test_the_largest_words_stay_in_their_parts() -> None:
    frames, begins = b"\xff" * (9 * 4120), [(0xFFFFFFFF, 0xFFFFFFFF)] * 9
    assert sums._side_by_side(frames, "little", 4120, begins) == sums._one_by_one(frames, "little", 4120, begins)


def test_more_frames_than_are_added_up_at_once_are_all_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "_MOST", 10)
    content = memoryview(random.Random(3).randbytes(sums.HEADER_SIZE + 25 * 536))
    begins = [(number, 7) for number in range(25)]
    assert sums.checksums(content, "little", 512, begins) == sums._one_by_one(
        bytes(content[sums.HEADER_SIZE :]), "little", 536, begins
    )


def test_every_frame_that_sqlite_wrote_follows_and_a_changed_one_does_not(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "file.db")
    connection.execute("pragma journal_mode = wal")
    connection.execute("create table t (x)")
    for number in range(20):
        connection.execute("insert into t values (?)", (str(number) * 3000,))
        connection.commit()
    content = bytearray((tmp_path / "file.db-wal").read_bytes())
    connection.close()
    whole = WriteAheadLog(bytes(content))
    assert whole.slots > 20
    assert all(frame is not None and frame.follows for frame in whole.frames)
    content[sums.HEADER_SIZE + 12 * (sums.FRAME_HEADER_SIZE + whole.page_size) + 999] ^= 1
    changed = WriteAheadLog(bytes(content)).frames
    assert [slot for slot, frame in enumerate(changed) if frame is None or not frame.follows] == [12]
