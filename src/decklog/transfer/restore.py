"""Putting a backup in the place of a log, after proving it, and keeping what was there."""

import itertools
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from decklog.core.clock import Clock, to_text
from decklog.core.disk import sync
from decklog.core.errors import Busy, Damaged, Invalid, NotADatabase, NotFound
from decklog.db.sqlite.backup import alone, copy_file, publish, use_wal
from decklog.db.sqlite.fair_lock import FairLock
from decklog.db.sqlite.file import FileState, look
from decklog.db.sqlite.holders import holders_of
from decklog.transfer.move import is_same
from decklog.transfer.progress import Progress, silent
from decklog.transfer.unfinished import sweep, working_on

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PATIENCE_SECONDS = 2.0


@dataclass(kw_only=True)
class Restored:
    """The log as it is now. `kept` is where the one before it lies."""

    path: str
    streams: int
    entries: int
    kept: str | None = None

    def as_dict(self) -> "dict[str, Any]":
        return asdict(self)


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
    from decklog.log import Decklog

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
    kept = _unused(f"{path}.before-{now[:19].replace(':', '')}Z")
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


def _unused(name: str) -> str:
    """Return a name that no file has: two may be kept within a second."""
    numbered = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(one for one in numbered if not os.path.lexists(one))


@contextmanager
def _nobody_else(path: str) -> "Iterator[bool]":
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
    for suffix in ("", "-wal", "-shm", "-lock"):
        if os.path.lexists(partial + suffix):
            os.unlink(partial + suffix)
