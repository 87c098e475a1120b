"""A log as files that git can merge: one `STREAM.jsonl` per stream, one entry a line, and the blobs beside them."""

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from decklog.core.disk import sync_descriptor
from decklog.core.errors import Conflict, NotFound
from decklog.journal.replication import Replication
from decklog.records.values import to_json
from decklog.transfer.jsonl.file_names import file_of
from decklog.transfer.progress import Progress, silent
from decklog.transfer.reading import digests_in, digests_of, entries_of

if TYPE_CHECKING:
    from typing import Any

    from decklog.log import Decklog
    from decklog.stores.results.journal import StreamHead

BLOBS = "blobs"
_LAST_BLOCK = 64 * 1024


@dataclass(kw_only=True)
class Exported:
    """What was written."""

    folder: str
    streams: int = 0
    entries: int = 0
    blobs: int = 0

    def as_dict(self) -> "dict[str, Any]":
        return asdict(self)


class JsonlExport:
    """Writes a folder. The same log gives the same bytes, on either engine."""

    def __init__(self, log: "Decklog", folder: str, progress: Progress = silent) -> None:
        self._log = log
        self._folder = os.path.abspath(folder)
        self._progress = progress
        self._done = Exported(folder=self._folder)

    def run(self, stream: str | None = None) -> Exported:
        """Write all streams, or one with the blobs it names. Files of other streams in the folder are left alone."""
        heads = self._log.journal.heads()
        if stream is not None:
            heads = [head for head in heads if head["stream"] == stream]
            if not heads:
                raise NotFound(f"there is no run {stream!r} to export", hint="decklog runs find lists the runs.")
        os.makedirs(os.path.join(self._folder, BLOBS), mode=0o700, exist_ok=True)
        whole = sum(head["seq"] for head in heads)
        named: set[str] = set()
        for head in heads:
            self._write_stream(head, whole, named if stream is not None else None)
        for digest in sorted(named) if stream is not None else digests_of(self._log):
            self._write_blob(digest)
        return self._done

    def _write_stream(self, head: "StreamHead", whole: int, named: set[str] | None) -> None:
        path = os.path.join(self._folder, file_of(head["stream"]))
        self._refuse_to_lose(path, head["stream"])
        partial = path + ".partial"
        with os.fdopen(_fresh(partial), "wb") as file:
            for batch in entries_of(self._log, head["stream"], after=0, until=head["seq"]):
                file.writelines(map(line_of, batch))
                if named is not None:
                    named.update(digest for entry in batch for digest in digests_in(entry))
                self._done.entries += len(batch)
                self._progress("exporting entries", self._done.entries, whole)
            file.flush()
            sync_descriptor(file.fileno())
        os.replace(partial, path)
        self._done.streams += 1

    def _refuse_to_lose(self, path: str, stream: str) -> None:
        """Make sure that a file which is there already holds nothing but the beginning of this stream."""
        last = _last_line(path)
        if last is None:
            return
        try:
            seq, hash = json.loads(last)["seq"], json.loads(last)["hash"]
            ours = Replication.of(self._log).given_out(stream, after=seq - 1, limit=1)
        except (ValueError, KeyError, TypeError):
            ours, hash = [], None
        if not ours or ours[0]["hash"] != hash:
            raise Conflict(
                f"{path} ends with an entry that this log does not have, and was left as it is",
                hint=f"Take it in first: decklog import jsonl {self._folder}",
                path=path,
                stream=stream,
            )

    def _write_blob(self, digest: str) -> None:
        path = os.path.join(self._folder, BLOBS, digest)
        for _, content in [] if os.path.lexists(path) else Replication.of(self._log).blobs([digest]):
            with os.fdopen(_fresh(path + ".partial"), "wb") as file:
                file.write(content)
            os.replace(path + ".partial", path)
        self._done.blobs += os.path.lexists(path)


def line_of(entry: "dict[str, Any]") -> bytes:
    """Write an entry as its line. Columns without a value are left out, so a column that is added one day changes no line."""
    return to_json({name: value for name, value in entry.items() if value is not None}).encode() + b"\n"


def _fresh(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _last_line(path: str) -> bytes | None:
    """Read a file's last line; None when there is no file or nothing in it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        size, block = file.seek(0, os.SEEK_END), _LAST_BLOCK
        while True:
            file.seek(max(0, size - block))
            lines = file.read().rstrip(b"\n").split(b"\n")
            if len(lines) > 1 or block >= size:
                return lines[-1] or None
            block *= 4
