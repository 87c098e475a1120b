"""A log as JSON Lines: export to a folder, and import from one."""

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import IO, Any

from decklog.core.clock import from_text, to_text
from decklog.core.disk import sync_descriptor
from decklog.core.errors import Conflict, DecklogError, Invalid, NotFound, TooLarge
from decklog.journal.replication import FIELDS, Replication
from decklog.journal.rows import RESERVED, StreamHead
from decklog.log import Decklog
from decklog.records.values import to_json
from decklog.transfer.archive import refuse_archived
from decklog.transfer.reading import DIGEST, Progress, WorkResult, find_digests, no_progress, read_blob_digests, read_entries

Line = tuple[int, dict[str, Any]]


SUFFIX = ".jsonl"
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-@.")
_LONGEST = 180
# Names that some systems reserve for devices, with any ending.
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")


def stream_file_name(stream: str) -> str:
    """Name the file of a stream.

    All but small letters, digits and a few signs is written as `%xx`: some file systems take `Run` and `run` for one name.
    A long name is cut and ends in its digest.
    """
    name = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in stream.encode())
    if name.startswith((".", "-")) or _DEVICES.match(name):
        name = f"%{ord(name[0]):02x}{name[1:]}"
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}%{sha256(stream.encode()).hexdigest()[:32]}"
    return name + SUFFIX


BLOBS = "blobs"
_LAST_BLOCK = 64 * 1024


@dataclass(kw_only=True)
class ExportResult(WorkResult):
    """The result of an export."""

    folder: str
    streams: int = 0
    entries: int = 0
    blobs: int = 0


class JsonlExport:
    """Writes a log to a folder. The bytes are the same for the same log on either engine."""

    def __init__(self, log: Decklog, folder: str, progress: Progress = no_progress) -> None:
        self._log = log
        self._folder = os.path.abspath(folder)
        self._progress = progress
        self._done = ExportResult(folder=self._folder)

    def run(self, stream: str | None = None) -> ExportResult:
        """Write all streams, or one with the blobs it names. Files of other streams in the folder are left alone."""
        refuse_archived(self._log, stream)
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
        for digests in read_blob_digests(self._log) if stream is None else [sorted(named)]:
            for digest in digests:
                self._write_blob(digest)
        return self._done

    def _write_stream(self, head: StreamHead, whole: int, named: set[str] | None) -> None:
        path = os.path.join(self._folder, stream_file_name(head["stream"]))
        self._check_existing_file(path, head["stream"])
        partial = path + ".partial"
        with os.fdopen(_create_file(partial), "wb") as file:
            for batch in read_entries(self._log, head["stream"], after=0, until=head["seq"]):
                file.writelines(map(format_line, batch))
                if named is not None:
                    named.update(digest for entry in batch for digest in find_digests(entry))
                self._done.entries += len(batch)
                self._progress("exporting entries", self._done.entries, whole)
            file.flush()
            sync_descriptor(file.fileno())
        os.replace(partial, path)
        self._done.streams += 1

    def _check_existing_file(self, path: str, stream: str) -> None:
        """Raise Conflict if an existing file has entries that the stream lacks."""
        last = _read_last_line(path)
        if last is None:
            return
        try:
            seq, hash = json.loads(last)["seq"], json.loads(last)["hash"]
            ours = Replication.of(self._log).export_entries(stream, after=seq - 1, limit=1)
        except (ValueError, KeyError, TypeError):
            ours, hash = [], None
        if not ours or ours[0]["hash"] != hash:
            raise Conflict(
                f"{path} ends with an entry that this log does not have, and was left as it is",
                hint=f"Import it first: decklog import jsonl {self._folder}",
                path=path,
                stream=stream,
            )

    def _write_blob(self, digest: str) -> None:
        path = os.path.join(self._folder, BLOBS, digest)
        for _, content in [] if os.path.lexists(path) else Replication.of(self._log).blobs([digest]):
            with os.fdopen(_create_file(path + ".partial"), "wb") as file:
                file.write(content)
            os.replace(path + ".partial", path)
        self._done.blobs += os.path.lexists(path)


def format_line(entry: dict[str, Any]) -> bytes:
    """Return an entry as a line. Empty columns are omitted, so that a new column does not change old lines."""
    return to_json({name: value for name, value in entry.items() if value is not None}).encode() + b"\n"


def _create_file(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _read_last_line(path: str) -> bytes | None:
    """Return a file's last line; None if there is no file or it is empty."""
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


LONGEST_LINE = 64 * 1024 * 1024
LARGEST_BLOB = 1024 * 1024 * 1024
_BATCH = 1000
_NUMBERS = frozenset({"seq", "iteration", "redacted"})
_NOT_IN_NAMES = frozenset(" :\t\r\n\x0b\x0c")
_NEEDED = ("stream", "seq", "at", "hash", "kind")


@dataclass(kw_only=True)
class LoadSummary(WorkResult):
    """The counts of new and known records."""

    folder: str
    streams: int = 0
    entries: int = 0
    already: int = 0
    blobs: int = 0


class _RollBack(Exception):
    """Rolls back the search for a failing line, if every line alone succeeds."""


class JsonlImport:
    """Imports a folder in batches, each all or nothing. After an interruption, a second import continues."""

    def __init__(self, log: Decklog, folder: str, progress: Progress = no_progress) -> None:
        self._log = log
        self._folder = os.path.abspath(folder)
        self._progress = progress
        self._done = LoadSummary(folder=self._folder)

    def run(self) -> LoadSummary:
        if not os.path.isdir(self._folder):
            raise NotFound(f"there is no folder {self._folder} to import from")
        # Import reserved streams last: their records refer to runs, but not the other way round.
        names = sorted(os.listdir(self._folder), key=lambda name: (name.startswith("@"), name))
        names = [name for name in names if name.endswith(SUFFIX)]
        if not names:
            raise NotFound(f"{self._folder} has no *{SUFFIX} file", hint="decklog export jsonl DIR writes them.")
        self._import_blobs()
        for name in names:
            self._import_stream(name)
        # Budget sums and the memory's index are not in entries, so rebuild them from the records.
        self._log.rebuild()
        return self._done

    # Streams

    def _import_stream(self, name: str) -> None:
        with _open_plain_file(os.path.join(self._folder, name)) as file:
            batch: list[Line] = []
            for line in _read_lines(file, name):
                batch.append(line)
                if len(batch) == _BATCH:
                    self._import_batch(name, batch)
                    batch = []
            self._import_batch(name, batch)
        self._done.streams += 1

    def _import_batch(self, name: str, batch: list[Line]) -> None:
        if not batch:
            return
        try:
            new = Replication.of(self._log).receive([entry for _, entry in batch])
        except DecklogError as problem:
            raise self._locate_problem(problem, name, batch) from problem
        self._done.entries += new
        self._done.already += len(batch) - new
        self._progress("importing entries", self._done.entries + self._done.already, 0)

    def _locate_problem(self, problem: DecklogError, name: str, batch: list[Line]) -> DecklogError:
        """Return the error with the line that caused it."""
        seq = problem.details.get("seq")
        number = next((number for number, entry in batch if entry["seq"] == seq), None)
        if number is None:
            number, problem = self._find_failing_line(problem, batch)
        return _add_place(problem, name, number)

    def _find_failing_line(self, problem: DecklogError, batch: list[Line]) -> tuple[int, DecklogError]:
        """Import the entries one by one until one fails, and roll back; return its line and its error."""
        taken = 0
        try:
            with self._log.transaction():
                for _, entry in batch:
                    Replication.of(self._log).receive([entry])
                    taken += 1
                raise _RollBack
        except DecklogError as closer:
            return batch[taken][0], closer
        except _RollBack:
            return batch[0][0], problem

    # Blobs

    def _import_blobs(self) -> None:
        folder = os.path.join(self._folder, BLOBS)
        if not os.path.lexists(folder):
            return
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            raise Invalid(f"{folder} is no folder, and was not followed", path=folder)
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if DIGEST.fullmatch(name) is None:
                raise Invalid(f"{path} is not named by a digest", hint="Only blobs belong there.", path=path)
            if Replication.of(self._log).find_missing_blobs([name]):
                self._import_blob(path, name)

    def _import_blob(self, path: str, digest: str) -> None:
        with _open_plain_file(path) as file:
            content = file.read(LARGEST_BLOB + 1)
        if len(content) > LARGEST_BLOB:
            raise TooLarge(f"{path} has more than {LARGEST_BLOB} bytes", path=path)
        try:
            Replication.of(self._log).import_blobs([(digest, content)])
        except DecklogError as problem:
            raise _add_place(problem, path, None) from problem
        self._done.blobs += 1


@contextmanager
def _open_plain_file(path: str) -> Iterator[IO[bytes]]:
    """Open a plain file. Don't follow links: they could lead to any file that the user may read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        raise Invalid(f"{path} can't be opened as a plain file: {problem.strerror}", path=path) from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Invalid(f"{path} is no plain file, and was not read", path=path)
        yield file


def _read_lines(file: IO[bytes], name: str) -> Iterator[Line]:
    number = 0
    while raw := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(raw) > LONGEST_LINE:
            raise _add_place(TooLarge(f"the line has more than {LONGEST_LINE} bytes"), name, number)
        try:
            entry = _parse_line(raw)
        except (ValueError, RecursionError) as problem:
            raise _add_place(Invalid(f"this is no entry: {problem}"), name, number) from None
        if stream_file_name(entry["stream"]) != name:
            raise _add_place(Invalid(f"the entry belongs to {entry['stream']!r}, whose file is another"), name, number)
        yield number, entry


def _parse_line(raw: bytes) -> dict[str, Any]:
    """Read one line and check what each column may hold; ValueError names what is wrong."""
    if raw.startswith((b"<<<<<<<", b"=======", b">>>>>>>")):
        raise ValueError("git conflict marker: two logs wrote to this stream")
    entry = json.loads(raw)
    if not isinstance(entry, dict):
        raise ValueError("a line must be a JSON object")
    if unknown := entry.keys() - set(FIELDS):
        raise ValueError(f"there is no field {', '.join(sorted(unknown))}")
    if missing := [name for name in _NEEDED if entry.get(name) is None]:
        raise ValueError(f"it has no {', '.join(missing)}")
    for name, value in entry.items():
        kind = int if name in _NUMBERS else str
        if value is not None and type(value) is not kind:
            raise ValueError(f"{name} is {value!r:.40}, and must be {'a number' if kind is int else 'text'}")
    _check_values(entry)
    return {"redacted": 0, **entry}


def _check_values(entry: dict[str, Any]) -> None:
    if to_text(from_text(entry["at"])) != entry["at"]:
        raise ValueError(f"{entry['at']!r:.40} is not written as this journal writes times")
    if not 1 <= len(entry["stream"]) <= 200 or set(entry["stream"]) & _NOT_IN_NAMES:
        raise ValueError(f"{entry['stream']!r:.40} is not a valid stream name")
    if entry["stream"][0] == "@" and entry["stream"] not in RESERVED:
        raise ValueError(f"{entry['stream']!r:.40} is not a reserved stream")
    if not 1 <= entry["seq"] < 2**32:
        raise ValueError(f"{entry['seq']} is not a valid entry number")
    for name in ("payload", "refs"):
        if entry.get(name) is not None:
            json.loads(entry[name])
    for value in entry.values():
        if type(value) is str:
            value.encode()
            if "\x00" in value:
                raise ValueError("it holds a NUL byte")


def _add_place(problem: DecklogError, name: str, number: int | None) -> DecklogError:
    place = name if number is None else f"{name}:{number}"
    return type(problem)(
        f"{place}: {problem.message}",
        hint=problem.hint or "Nothing of this batch was imported. Fix the file and import it again.",
        **{**problem.details, "file": name, "line": number},
    )
