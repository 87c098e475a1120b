"""Archives: the entries of old runs in files that can be verified and restored.

A partition of a PostgreSQL log becomes a file, an entry in the stream `@archive` names it with its digest and the heads of its
streams, and one transaction drops the partition. After a kill at any point, the same call finishes the work.
"""

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import groupby, islice
from tempfile import TemporaryDirectory
from typing import Any

from decklog.core.clock import to_text
from decklog.core.disk import sync, sync_descriptor
from decklog.core.errors import Conflict, Damaged, Invalid, NotFound
from decklog.db.base import STREAM_SIZE
from decklog.journal import chain
from decklog.journal.entry import Entry, EntryKind
from decklog.journal.findings import Verification, archive_note
from decklog.journal.projections import Image, Projections
from decklog.journal.replication import FIELDS, Replication
from decklog.journal.rows import COLUMNS, SELECT
from decklog.journal.texts import Texts
from decklog.log import Decklog
from decklog.stores.overview import task_counts
from decklog.transfer.reading import Progress, WorkResult, no_progress

Row = tuple[Any, ...]

STREAM = "@archive"
_ARCHIVED, _RESTORED = "archived", "restored"
_BATCH = 2_000
# Full ranges whose runs have all ended before a time. The first range has the streams of no run.
_ENDED = """
select r.first_no, r.end_no
  from entry_ranges r
 where r.first_no > 0
   and r.archive is null
   and r.end_no <= (select max(no) from streams)
   and exists (select 1 from streams s where s.no >= r.first_no and s.no < r.end_no)
   and not exists (
     select 1
       from streams s left join runs u on u.id = s.name
      where s.no >= r.first_no and s.no < r.end_no and (u.ended_at is null or u.ended_at >= :before)
   )
 order by r.first_no
"""
_HEADS = "select name, head_seq, head_hash from streams where no >= :first and no < :end order by no"
_ENTRIES = f"{SELECT} where pos >= :start and pos < :end order by pos"


@dataclass(kw_only=True)
class ArchiveResult(WorkResult):
    """The archived or restored files, with the numbers of their runs and entries."""

    files: list[str] = field(default_factory=list)
    runs: int = 0
    entries: int = 0


@dataclass(kw_only=True)
class Manifest:
    """The journal's record of an archive: file, digest, and the number and hash of each stream's last entry."""

    first_no: int
    end_no: int
    file: str
    sha256: str
    entries: int
    heads: dict[str, list[Any]]


class Archive:
    """Writes, verifies and restores the archives of a log in a folder."""

    def __init__(self, log: Decklog, folder: str, progress: Progress = no_progress) -> None:
        if log.db.engine != "postgres":
            raise Invalid(
                "a SQLite log has no partitions to archive", hint="Drop old texts instead: decklog prune --older-than 90d --apply"
            )
        self._log = log
        self._db = log.db
        self._folder = folder
        self._progress = progress

    # Writing

    def create(self, before: datetime) -> ArchiveResult:
        """Archive every partition whose runs have all ended before a time."""
        ranges = self._db.read(lambda: self._db.rows(_ENDED, {"before": to_text(before)})[1])
        result = ArchiveResult()
        os.makedirs(self._folder, exist_ok=True)
        for done, (first, end) in enumerate(ranges):
            self._progress("archiving partitions", done, len(ranges))
            self._update_task_counts(first, end)
            manifest = self._write(first, end)
            self._append_manifest(manifest)
            self._db.write(lambda manifest=manifest: self._drop(manifest))  # type: ignore[misc]
            result.files.append(os.path.join(self._folder, manifest.file))
            result.runs += len(manifest.heads)
            result.entries += manifest.entries
        return result

    def _write(self, first: int, end: int) -> Manifest:
        """Write the file of a range, all or nothing."""
        name = f"entries-{first}-{end}.jsonl.gz"
        path = os.path.join(self._folder, name)
        partial = f"{path}.{os.getpid()}.partial"
        try:
            with open(partial, "wb") as file:
                manifest = self._db.read(lambda: self._write_rows(file, name, first, end))
                file.flush()
                sync_descriptor(file.fileno())
            manifest.sha256 = _hash_file(partial)
            os.replace(partial, path)
        finally:
            if os.path.exists(partial):
                os.unlink(partial)
        sync(self._folder)
        return manifest

    def _write_rows(self, file: Any, name: str, first: int, end: int) -> Manifest:
        file.seek(0)
        file.truncate()
        heads, entries = self._heads(first, end), 0
        with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
            for row in self._db.each(_ENTRIES, {"start": first * STREAM_SIZE, "end": end * STREAM_SIZE}):
                packed.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
                entries += 1
        return Manifest(first_no=first, end_no=end, file=name, sha256="", entries=entries, heads=heads)

    def _update_task_counts(self, first: int, end: int) -> None:
        """Update the task counts of runs while their entries can still be read."""
        for run_id in self._db.read(lambda: self._heads(first, end)):
            self._db.write(lambda run_id=run_id: task_counts.catch_up(self._db, run_id))  # type: ignore[misc]

    def _heads(self, first: int, end: int) -> dict[str, list[Any]]:
        """Return the number and hash of each stream's last entry."""
        return {stream: [seq, hash] for stream, seq, hash in self._db.rows(_HEADS, {"first": first, "end": end})[1]}

    def _append_manifest(self, manifest: Manifest) -> None:
        self._log.journal.append(
            STREAM,
            f"Archived {len(manifest.heads)} runs in {manifest.file}",
            kind=EntryKind.EVENT,
            subtype=_ARCHIVED,
            payload=asdict(manifest),
            key=manifest.sha256,
        )

    def _drop(self, manifest: Manifest) -> None:
        """Drop the partition of a range, unless a run of it was written to since its file was."""
        bound = {"first": manifest.first_no, "end": manifest.end_no}
        # Wait for runs that are starting, and block new ones for a moment.
        self._db.rows("lock table streams in share mode", {})
        if self._heads(manifest.first_no, manifest.end_no) != manifest.heads:
            raise Conflict("a run was written to while it was archived", hint="Nothing was dropped. Try again.")
        # In the order in which a search locks them.
        self._db.rows("lock table entry_text, entries in access exclusive mode", {})
        for table in ("entry_text", "entries"):
            self._db.rows(f"alter table {table} detach partition {table}_{manifest.first_no}", {})
            self._db.rows(f"drop table {table}_{manifest.first_no}", {})
        self._db.count("delete from entry_text_marks where stream_no >= :first and stream_no < :end", bound)
        sql = "update entry_ranges set archive = :file where first_no = :first"
        self._db.count(sql, {"file": manifest.file, "first": manifest.first_no})

    # Bringing back

    def restore(self, file: str) -> ArchiveResult:
        """Restore the entries of a file, all or nothing. A second time changes nothing."""
        manifest = self._check_file(file)
        if self._db.write(lambda: self._restore(file, manifest)):
            return ArchiveResult(files=[file], runs=len(manifest.heads), entries=manifest.entries)
        return ArchiveResult(files=[file])

    def _restore(self, file: str, manifest: Manifest) -> bool:
        bound = {"first": manifest.first_no, "end": manifest.end_no}
        sql = "delete from entry_ranges where first_no = :first and archive is not null"
        if not self._db.count(sql, bound):
            return False
        self._db.rows("select add_entry_range(:first, :end)", bound)
        entries, found = 0, _read_rows(file)
        while rows := list(islice(found, _BATCH)):
            self._db.insert("entries", COLUMNS, rows)
            entries += len(rows)
            self._progress("restoring entries", entries, manifest.entries)
        problems = list(_find_problems(file, manifest))
        if problems:
            raise Damaged(f"{manifest.file} does not verify: {problems[0]['what']}")
        self._log.journal.append(STREAM, f"Restored {manifest.file}", kind=EntryKind.EVENT, subtype=_RESTORED)
        return True

    # Reading

    def extract(self, file: str, target: Decklog, run_id: str | None = None) -> ArchiveResult:
        """Copy the runs of a file, or one of them, to another log, where every command can read them."""
        manifest = self._check_file(file)
        given_out, taken = Replication.of(self._log), Replication.of(target)
        rows = (row for row in _read_rows(file) if run_id in (None, row[chain.STREAM]))
        result = ArchiveResult(files=[file], runs=1 if run_id is not None else len(manifest.heads))
        while batch := list(islice(rows, _BATCH)):
            entries = [dict(zip(FIELDS, row[1:], strict=True)) for row in batch]
            digests = {entry[f"{name}_digest"] for entry in entries for name in ("body", "payload")} - {None}
            taken.import_blobs(list(given_out.blobs(sorted(digests))))
            taken.receive(entries)
            result.entries += len(batch)
            self._progress("reading entries", result.entries, manifest.entries)
        target.rebuild()
        return result

    def _check_file(self, file: str) -> Manifest:
        """Return the manifest of a file that matches the journal."""
        name = os.path.basename(file)
        manifest = self._find_manifest(name)
        if manifest is None:
            raise NotFound(f"the journal of this log names no archive {name}")
        if not os.path.exists(file):
            raise NotFound(f"there is no file {file}")
        if _hash_file(file) != manifest.sha256:
            raise Damaged(f"{name} is not the file that was archived: its digest differs")
        return manifest

    # Verifying

    def verify(self, result: Verification) -> None:
        """Check the files of all archived ranges against the journal; add problems to the result."""
        ranges = self._db.read(
            lambda: self._db.rows("select first_no, end_no, archive from entry_ranges where archive is not null", {})[1]
        )
        for done, (first, end, name) in enumerate(ranges):
            self._progress("verifying archives", done, len(ranges))
            manifest = self._find_manifest(name)
            where = {"table": "entry_ranges", "record_id": str(first), "column": "archive"}
            if manifest is None or (manifest.first_no, manifest.end_no) != (first, end):
                result.bad(f"the archive {name} is named by no entry", **where)
                continue
            self._check_heads(manifest, result)
            path = os.path.join(self._folder, name)
            if not os.path.exists(path):
                result.bad(f"the archive {name} is not in {self._folder}", **where)
                continue
            if _hash_file(path) != manifest.sha256:
                result.bad(f"the archive {name} is not the file that was written: its digest differs", **where)
            problems = list(_find_problems(path, manifest))
            for problem in problems:
                result.bad(**problem)
            if not problems:
                self._check_records(path, result)
            result.entries += manifest.entries
            result.streams += len(manifest.heads)

    def _check_records(self, path: str, result: Verification) -> None:
        """Compare the records of archived runs with their newest entries."""
        newest: dict[str, dict[str, Row]] = {}
        for row in _read_rows(path):
            if row[chain.RECORD_TABLE] is not None:
                newest.setdefault(row[chain.RECORD_TABLE], {})[row[chain.RECORD_ID]] = row
        classes = self._log.record_classes()
        projections = Projections(self._db, classes, result, Texts(self._db, result))
        for table, rows in newest.items():
            images = [
                Image(classes[table], row[chain.RECORD_ID], row[chain.STREAM], row[chain.SEQ], row[chain.PAYLOAD])
                for row in rows.values()
            ]
            self._db.read(lambda table=table, images=images: projections.compare_with(classes[table], iter(images)))  # type: ignore[misc]
        result.unchecked = [what for what in result.unchecked if what != archive_note("records")]

    def _check_heads(self, manifest: Manifest, result: Verification) -> None:
        found = self._db.read(lambda: self._heads(manifest.first_no, manifest.end_no))
        for stream in sorted({*found, *manifest.heads}):
            if found.get(stream) != manifest.heads.get(stream):
                where = {"stream": stream, "table": "streams", "record_id": stream, "column": "head_seq"}
                result.bad(f"the stream {stream} has another head than its archive {manifest.file}", **where)

    def _find_manifest(self, name: str) -> Manifest | None:
        """Return the newest manifest of a file in the journal; None without one."""
        found: list[Entry] = self._log.journal.find(STREAM, subtype=_ARCHIVED, limit=1000)
        for entry in found:
            if isinstance(entry.payload, dict) and entry.payload.get("file") == name:
                return Manifest(**entry.payload)
        return None


@contextmanager
def open_archived_run(log: Decklog, file: str, run_id: str) -> Iterator[Decklog]:
    """Open a run of an archive as a separate log, which is removed afterwards."""
    with TemporaryDirectory(prefix="decklog-archive-") as folder, Decklog.open(os.path.join(folder, "decklog.db")) as target:
        Archive(log, os.path.dirname(file)).extract(file, target, run_id)
        yield target


def refuse_archived(log: Decklog, stream: str | None = None) -> None:
    """Raise Conflict if the log, or the run, has archived entries: a copy would lack them."""
    archived = log.db.read(log.db.archived)
    if archived if stream is None else stream in archived:
        raise Conflict(
            "some runs are archived, and would be missing in a copy", hint="Bring them back: decklog archive restore FILE"
        )


def _hash_file(path: str) -> str:
    digest = sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _read_rows(path: str) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if not isinstance(row, list) or len(row) != len(COLUMNS) or type(row[0]) is not int:
                raise ValueError("a line is no entry")
            yield tuple(row)


def _find_problems(path: str, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Verify the chains of a file; yield broken links and streams that end differently from the manifest."""
    seen: dict[str, list[Any]] = {}
    try:
        for number, rows in groupby(_read_rows(path), lambda row: row[0] // STREAM_SIZE):
            previous, seq = chain.START, 0
            for row in rows:
                name, seq = str(row[chain.STREAM]), seq + 1
                if row[0] != number * STREAM_SIZE + seq or chain.find_mismatch(previous, row) is not None:
                    what = f"entry {name}:{row[chain.SEQ]} in {manifest.file} does not follow from the one before it"
                    yield {"what": what, "stream": name, "seq": seq, "table": "entries", "record_id": f"{name}:{seq}"}
                previous = row[chain.HASH]
                seen[name] = [seq, previous]
    except (OSError, EOFError, ValueError, zlib.error) as problem:
        yield {"what": f"the archive {manifest.file} can't be read: {problem}", "table": "entries"}
        return
    for stream, head in manifest.heads.items():
        if seen.get(stream) != head:
            yield {
                "what": f"{stream} ends elsewhere in {manifest.file} than in its entry",
                "stream": stream,
                "table": "entries",
            }
