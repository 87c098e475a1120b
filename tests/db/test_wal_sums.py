import sqlite3
from pathlib import Path

from decklog.db.sqlite import damage as sums
from decklog.db.sqlite.damage import WriteAheadLog


def test_checksums_match_frames_of_sqlite_but_not_changed_ones(tmp_path: Path) -> None:
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
