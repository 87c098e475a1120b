"""Write backups, and replace a log by a verified backup, keeping the old log."""

import fcntl
import itertools
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from decklog.core.clock import Clock, to_text
from decklog.core.disk import sync
from decklog.core.errors import Busy, Conflict, Damaged, Invalid, NotADatabase, NotFound
from decklog.db.sqlite.backup import alone, copy_file, publish, use_wal
from decklog.db.sqlite.fair_lock import FairLock
from decklog.db.sqlite.file import FileState, filesystem_of, holders_of, is_network, look
from decklog.log import Decklog
from decklog.transfer.move import Move, is_same
from decklog.transfer.reading import Progress, WorkResult, no_progress

_PARTIAL_NAME = re.compile(
    r"\.(?P<pid>\d+)\.(partial|restoring)(-wal|-shm|-lock|-journal|-owner)?$|^\.decklog-recover-(?P<recovering>\d+)-"
)
_LOCK_SUFFIX = "-owner"
# Another machine or container may use the same process ids, but a working process touches its files.
_SECONDS_UNTOUCHED = 3600.0


@contextmanager
def lock_partial_file(partial: str) -> Iterator[None]:
    """Hold a lock while a file is written, so that other processes see that this one still works on it."""
    owner = partial + _LOCK_SUFFIX
    descriptor = os.open(owner, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.unlink(owner)
        os.close(descriptor)


def remove_leftovers(folder: str) -> None:
    """Remove the partial files of dead processes from a folder."""
    names = os.listdir(folder)
    # Locks end with their process, but not reliably on a network file system.
    if not is_network(filesystem_of(folder)):
        for name in names:
            named = _PARTIAL_NAME.search(name) if name.endswith(_LOCK_SUFFIX) else None
            # A living process may be about to take its lock.
            if named and not _is_alive(int(named["pid"])) and _is_abandoned(os.path.join(folder, name)):
                _remove_all(folder, name.removesuffix(_LOCK_SUFFIX), names)
    for name in names:
        named = _PARTIAL_NAME.search(name)
        path = os.path.join(folder, name)
        if named and os.path.lexists(path) and not _is_alive(int(named["pid"] or named["recovering"])) and _is_untouched(path):
            _remove_unfinished(path)


def _is_abandoned(owner: str) -> bool:
    try:
        descriptor = os.open(owner, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False  # its process has just ended, or it is not ours
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove_all(folder: str, partial: str, names: list[str]) -> None:
    """Remove a partial file and its side files, the lock file last."""
    for name in sorted((name for name in names if name.startswith(partial)), key=lambda name: name.endswith(_LOCK_SUFFIX)):
        if _PARTIAL_NAME.search(name):
            _remove_unfinished(os.path.join(folder, name))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _is_untouched(path: str) -> bool:
    names = [path, *(os.path.join(path, name) for name in (os.listdir(path) if os.path.isdir(path) else []))]
    try:
        return all(time.time() - os.lstat(name).st_mtime > _SECONDS_UNTOUCHED for name in names)
    except FileNotFoundError:
        return False  # another process is removing it


def _remove_unfinished(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(FileNotFoundError):  # another process removed it
        os.unlink(path)


_PATIENCE_SECONDS = 2.0


@dataclass(kw_only=True)
class RestoreResult(WorkResult):
    """The restored log. `kept` is the path of the old log."""

    path: str
    streams: int
    entries: int
    kept: str | None = None


def restore(backup: str, path: str, *, clock: Clock | None = None, progress: Progress = no_progress) -> RestoreResult:
    """Replace a log by a backup. The present log is kept next to it; a backup that does not verify changes nothing."""
    backup, path = os.path.abspath(backup), os.path.abspath(path)
    if look(backup) is not FileState.DATABASE:
        raise NotFound(f"there is no backup at {backup}", path=backup)
    if is_same(backup, path):
        raise Invalid(f"{path} can't be restored from itself")
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    remove_leftovers(os.path.dirname(path))
    partial = f"{path}.{os.getpid()}.restoring"
    with lock_partial_file(partial):
        try:
            _copy(backup, partial, progress)
            streams, entries = _verify_copy(partial, backup, progress)
            kept = _replace(path, partial, to_text((clock or Clock()).now()))
        finally:
            _remove(partial)
    return RestoreResult(path=path, streams=streams, entries=entries, kept=kept)


def _copy(backup: str, partial: str, progress: Progress) -> None:
    try:
        copy_file(backup, partial, lambda done, whole: progress("copying pages", done, whole))
    except NotADatabase:
        raise NotADatabase(f"{backup} is not a SQLite database; nothing was changed", path=backup) from None


def _verify_copy(partial: str, backup: str, progress: Progress) -> tuple[int, int]:
    progress("verifying the backup", 0, 0)
    with Decklog.open(partial) as log:
        result = log.journal.verify()
    if not result.ok:
        assert result.first is not None
        raise Damaged(
            f"{backup} does not verify ({result.first.what}); nothing was changed",
            hint=f"Recover its intact parts: decklog recover {backup}",
            path=backup,
        )
    return result.streams, result.entries


def _replace(path: str, partial: str, now: str) -> str | None:
    """Replace the log by the new file; return the path of the old one."""
    if not os.path.lexists(path):
        publish(partial, path, overwrite=False)
        return None
    name = f"{path}.before-{now[:19].replace(':', '')}Z"
    # Two restores may happen within a second.
    numbered = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    kept = next(one for one in numbered if not os.path.lexists(one))
    lock = FairLock(f"{path}-lock", _PATIENCE_SECONDS)
    lock.acquire()
    try:
        with _lock_exclusively(path) as is_sound:
            _rename_old_file(path, kept)
            os.replace(partial, path)
        sync(os.path.dirname(path))
        if is_sound:
            use_wal(kept)
    finally:
        lock.release()
        lock.close()
    return kept


@contextmanager
def _lock_exclusively(path: str) -> Iterator[bool]:
    """Lock the file exclusively. Yield False if it is too damaged for SQLite's locks and nobody has it open."""
    holding = alone(path)
    try:
        look(path)
        holding.__enter__()
    except (NotADatabase, Damaged):
        if found := [*holders_of(path), *holders_of(f"{path}-shm")]:
            raise Busy(f"process {found[0]['pid']} has {path} open", hint="End it first.", holders=found) from None
        yield False
    else:
        try:
            yield True
        finally:
            holding.__exit__(None, None, None)


def _rename_old_file(path: str, kept: str) -> None:
    """Keep the old file and its remaining WAL under new names."""
    os.link(path, kept)
    for suffix in ("-wal", "-journal"):
        if os.path.lexists(path + suffix):
            os.rename(path + suffix, kept + suffix)
    # The new file must not meet the index of the old WAL.
    if os.path.lexists(f"{path}-shm"):
        os.unlink(f"{path}-shm")


def _remove(partial: str) -> None:
    for suffix in ("", "-journal", "-wal", "-shm", "-lock"):
        if os.path.lexists(partial + suffix):
            os.unlink(partial + suffix)


@dataclass(kw_only=True)
class BackupResult(WorkResult):
    """The backup file, and the number of its streams and entries."""

    path: str
    bytes: int
    streams: int
    entries: int


def back_up(log: Decklog, path: str | None = None, *, overwrite: bool = False, progress: Progress = no_progress) -> BackupResult:
    """Write a consistent copy as a SQLite file that only its owner can read.

    Without a path it is next to a SQLite log, and in the present folder for a server. An existing file is kept, unless
    `overwrite` is set.
    """
    if path is None:
        moment = to_text(log.clock.now())[:19].replace(":", "")
        folder = os.path.dirname(log.db.target) if log.db.engine == "sqlite" else os.getcwd()
        path = os.path.join(folder, f"decklog-{moment}Z.backup.db")
    path = os.path.abspath(path)
    if os.path.lexists(path) and (not overwrite or is_same(path, log.db.target)):
        raise Conflict(f"{path} exists already and was not changed", hint="Name another file.", path=path)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    remove_leftovers(os.path.dirname(path))
    partial = f"{path}.{os.getpid()}.partial"
    with lock_partial_file(partial):
        try:
            log.db.back_up(partial, lambda done, whole: progress("backing up pages", done, whole))
            streams, entries = _count_entries(log, partial, progress)
            publish(partial, path, overwrite=overwrite)
        finally:
            _remove(partial)
    return BackupResult(path=path, bytes=os.path.getsize(path), streams=streams, entries=entries)


def _count_entries(log: Decklog, partial: str, progress: Progress) -> tuple[int, int]:
    """Count the streams and entries of a copy. Fill it first with the log of a server, as of one moment."""
    if log.db.engine != "sqlite":
        with Decklog.open(partial, clock=log.clock) as copy:
            moved = log.db.read(lambda: Move(log, copy, progress).run())
        return moved.streams, moved.verified
    with Decklog.open(partial, clock=log.clock, read_only=True) as copy:
        heads = copy.journal.heads()
    return len(heads), sum(head["seq"] for head in heads)
