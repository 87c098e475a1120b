"""Putting a backup in the place of a log, after proving it, and keeping what was there."""

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
from decklog.transfer.reading import Progress, WorkResult, silent

_NAMED = re.compile(
    r"\.(?P<pid>\d+)\.(partial|restoring)(-wal|-shm|-lock|-journal|-owner)?$|^\.decklog-recover-(?P<recovering>\d+)-"
)
_OWNER = "-owner"
# Another machine or container may use the same process numbers; a process at work touches its files.
_SECONDS_UNTOUCHED = 3600.0


@contextmanager
def working_on(partial: str) -> Iterator[None]:
    """Hold a lock while a file is made, so that others can tell at once whether this process is still at work on it."""
    owner = partial + _OWNER
    descriptor = os.open(owner, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.unlink(owner)
        os.close(descriptor)


def sweep(folder: str) -> None:
    """Remove from a folder what processes that are gone have left of their work."""
    names = os.listdir(folder)
    # The system gives a lock back when its process ends. Over a network it may not know of it.
    if not is_network(filesystem_of(folder)):
        for name in names:
            named = _NAMED.search(name) if name.endswith(_OWNER) else None
            # A process that lives may be about to take its lock.
            if named and not _is_alive(int(named["pid"])) and _is_abandoned(os.path.join(folder, name)):
                _remove_all(folder, name.removesuffix(_OWNER), names)
    for name in names:
        named = _NAMED.search(name)
        path = os.path.join(folder, name)
        if named and os.path.lexists(path) and not _is_alive(int(named["pid"] or named["recovering"])) and _is_untouched(path):
            _remove_unfinished(path)


def _is_abandoned(owner: str) -> bool:
    try:
        descriptor = os.open(owner, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False  # it has just ended, or is not ours
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove_all(folder: str, partial: str, names: list[str]) -> None:
    """Remove a file and those that belong to it; the owner's mark goes last."""
    for name in sorted((name for name in names if name.startswith(partial)), key=lambda name: name.endswith(_OWNER)):
        if _NAMED.search(name):
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
        return False  # somebody else is sweeping


def _remove_unfinished(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(FileNotFoundError):  # somebody else was faster
        os.unlink(path)


_PATIENCE_SECONDS = 2.0


@dataclass(kw_only=True)
class Restored(WorkResult):
    """The log as it is now. `kept` is where the one before it lies."""

    path: str
    streams: int
    entries: int
    kept: str | None = None


def restore(backup: str, path: str, *, clock: Clock | None = None, progress: Progress = silent) -> Restored:
    """Replace a log by a backup. The present log is kept next to it; a backup that does not verify changes nothing."""
    backup, path = os.path.abspath(backup), os.path.abspath(path)
    if look(backup) is not FileState.DATABASE:
        raise NotFound(f"there is no backup at {backup}", path=backup)
    if is_same(backup, path):
        raise Invalid(f"{path} can't be restored from itself")
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    sweep(os.path.dirname(path))
    partial = f"{path}.{os.getpid()}.restoring"
    with working_on(partial):
        try:
            _copy(backup, partial, progress)
            streams, entries = _prove(partial, backup, progress)
            kept = _replace(path, partial, to_text((clock or Clock()).now()))
        finally:
            _remove(partial)
    return Restored(path=path, streams=streams, entries=entries, kept=kept)


def _copy(backup: str, partial: str, progress: Progress) -> None:
    try:
        copy_file(backup, partial, lambda done, whole: progress("copying pages", done, whole))
    except NotADatabase:
        raise NotADatabase(f"{backup} is not a SQLite database; nothing was changed", path=backup) from None


def _prove(partial: str, backup: str, progress: Progress) -> tuple[int, int]:
    progress("verifying the backup", 0, 0)
    with Decklog.open(partial) as log:
        result = log.journal.verify()
    if not result.ok:
        assert result.first is not None
        raise Damaged(
            f"{backup} does not verify ({result.first.what}); nothing was changed",
            hint=f"Take what is whole out of it: decklog recover {backup}",
            path=backup,
        )
    return result.streams, result.entries


def _replace(path: str, partial: str, now: str) -> str | None:
    """Put the new file in place; give the name under which the old one is kept."""
    if not os.path.lexists(path):
        publish(partial, path, overwrite=False)
        return None
    name = f"{path}.before-{now[:19].replace(':', '')}Z"
    # Two may be kept within a second.
    numbered = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    kept = next(one for one in numbered if not os.path.lexists(one))
    lock = FairLock(f"{path}-lock", _PATIENCE_SECONDS)
    lock.acquire()
    try:
        with _nobody_else(path) as is_sound:
            _keep(path, kept)
            os.replace(partial, path)
        sync(os.path.dirname(path))
        if is_sound:
            use_wal(kept)
    finally:
        lock.release()
        lock.close()
    return kept


@contextmanager
def _nobody_else(path: str) -> Iterator[bool]:
    """Hold others off; where the file is too damaged for SQLite's own locks (False), ask the system who has it open."""
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


def _keep(path: str, kept: str) -> None:
    """Keep the old file, and the WAL of one that could not be folded in, under names of their own."""
    os.link(path, kept)
    for suffix in ("-wal", "-journal"):
        if os.path.lexists(path + suffix):
            os.rename(path + suffix, kept + suffix)
    # An index of a WAL that is gone must not meet the new file.
    if os.path.lexists(f"{path}-shm"):
        os.unlink(f"{path}-shm")


def _remove(partial: str) -> None:
    for suffix in ("", "-journal", "-wal", "-shm", "-lock"):
        if os.path.lexists(partial + suffix):
            os.unlink(partial + suffix)


@dataclass(kw_only=True)
class BackedUp(WorkResult):
    """The copy, and how far it goes."""

    path: str
    bytes: int
    streams: int
    entries: int


def back_up(log: Decklog, path: str | None = None, *, overwrite: bool = False, progress: Progress = silent) -> BackedUp:
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
        raise Conflict(f"{path} is there already, and was left as it is", hint="Name another file.", path=path)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    sweep(os.path.dirname(path))
    partial = f"{path}.{os.getpid()}.partial"
    with working_on(partial):
        try:
            log.db.back_up(partial, lambda done, whole: progress("backing up pages", done, whole))
            streams, entries = _extent(log, partial, progress)
            publish(partial, path, overwrite=overwrite)
        finally:
            _remove(partial)
    return BackedUp(path=path, bytes=os.path.getsize(path), streams=streams, entries=entries)


def _extent(log: Decklog, partial: str, progress: Progress) -> tuple[int, int]:
    """Return how far a copy goes. What a server holds is moved into it first, all from one moment."""
    if log.db.engine != "sqlite":
        with Decklog.open(partial, clock=log.clock) as copy:
            moved = log.db.read(lambda: Move(log, copy, progress).run())
        return moved.streams, moved.verified
    with Decklog.open(partial, clock=log.clock, read_only=True) as copy:
        heads = copy.journal.heads()
    return len(heads), sum(head["seq"] for head in heads)
