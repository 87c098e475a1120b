"""Files as LangGraph's SQLite saver writes them."""

import json
import struct
from pathlib import Path
from typing import Any

import apsw

SCHEMA = """
create table checkpoints (
  thread_id text not null, checkpoint_ns text not null default '', checkpoint_id text not null, parent_checkpoint_id text,
  type text, checkpoint blob, metadata blob, primary key (thread_id, checkpoint_ns, checkpoint_id)
);
create table writes (
  thread_id text not null, checkpoint_ns text not null default '', checkpoint_id text not null, task_id text not null,
  task_path text not null default '', idx integer not null, channel text not null, type text, value blob,
  primary key (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);
"""


class Made:
    """An object of somebody's class."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts


def packed(value: Any) -> bytes:
    """Write MessagePack, with the long form of everything that has one."""
    match value:
        case None | bool():
            return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
        case int():
            return (
                struct.pack(">bq", -45, value) if abs(value) > 100 else struct.pack(">b", value) if value >= -32 else b"\xd0\x9c"
            )
        case float():
            return struct.pack(">bd", -53, value)
        case str():
            data = value.encode()
            return (bytes([0xA0 + len(data)]) if len(data) < 32 else b"\xdb" + struct.pack(">I", len(data))) + data
        case bytes():
            return b"\xc4" + bytes([len(value)]) + value
        case list():
            return b"\xdc" + struct.pack(">H", len(value)) + b"".join(map(packed, value))
        case dict():
            return b"\xdf" + struct.pack(">I", len(value)) + b"".join(packed(name) + packed(item) for name, item in value.items())
        case Made():
            data = packed(list(value.parts))
            return b"\xc7" + bytes([len(data)]) + b"\x05" + data
    raise AssertionError(value)


def document(number: int, **channels: Any) -> dict[str, Any]:
    return {"v": 4, "ts": f"2026-01-01T00:00:{number:02}+00:00", "id": f"1f0-{number}", "channel_values": channels}


MESSAGE = Made("langchain_core.messages.human", "HumanMessage", {"content": "Fix it"}, "model_validate_json")
CHECKPOINTS = [
    (
        "t1",
        "",
        "1f0-1",
        None,
        "msgpack",
        packed(document(1, messages=[MESSAGE], count=1000, rate=0.5, raw=b"\x00", no=None)),
        '{"step": -1}',
    ),
    ("t1", "", "1f0-2", "1f0-1", "msgpack", packed(document(2, messages=[], low=-100, ok=True)), b'{"step": 0}'),
    ("t1", "child:1", "1f0-2", None, "json", json.dumps(document(3)), "{broken"),
    ("a thread: two", "", "1f0-1", None, "msgpack", packed(document(1)), "{}"),
    ("t3", "", "1f0-1", None, "pickle", b"\x80\x04N.", "{}"),
    ("t3", "", "1f0-2", None, "msgpack", b"\xdf\x00\x00", "{}"),
]
WRITES = [
    ("t1", "", "1f0-1", "task-1", "~__pregel_pull, agent", 0, "messages", "msgpack", packed(["hello"])),
    ("t1", "", "1f0-1", "task-1", "", 1, "__error__", "null", None),
    ("t9", "", "1f0-1", "task-1", "", 0, "gone", "msgpack", packed(1)),
]


def build(path: Path, *, reverse: bool = False, checkpoints: list[Any] | None = None, writes: list[Any] | None = None) -> Path:
    path.unlink(missing_ok=True)
    db = apsw.Connection(str(path))
    db.execute(SCHEMA)
    for table, rows in (("checkpoints", checkpoints or CHECKPOINTS), ("writes", writes or WRITES)):
        for row in reversed(rows) if reverse else rows:
            db.execute(f"insert into {table} values ({', '.join('?' for _ in row)})", row)
    db.close()
    return path


def counts() -> dict[str, int]:
    return {"checkpoints": len(CHECKPOINTS), "writes": len(WRITES)}
