"""Atomic reading and replacing of other programs' files, with checks that this user may change them."""

import os
import shutil
import stat
import tempfile
from contextlib import suppress

from decklog.core.disk import sync, sync_descriptor
from decklog.core.errors import Conflict, DecklogError, Denied, DiskFull, Invalid, ReadOnly, TooLarge, Unavailable

_MOST_BYTES = 8 * 1024 * 1024
_HINT = "Nothing was changed."


def real(path: str) -> str:
    """Return the target of a path. A symbolic link stays; its target is changed."""
    return os.path.realpath(os.path.expanduser(path))


def read(path: str) -> str | None:
    """Return the text of a file with its original line breaks; None if the file is missing."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no plain file"
            raise Conflict(f"{path} is {kind}", hint=f"Move it out of the way. {_HINT}", path=path)
        if status.st_size > _MOST_BYTES:
            raise TooLarge(f"{path} has {status.st_size} bytes, which are no settings", hint=_HINT, path=path)
        with open(path, "rb") as file:
            return file.read().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as problem:
        raise Invalid(f"{path} is not UTF-8: {problem.reason} at byte {problem.start}", hint=_HINT, path=path) from None
    except OSError as problem:
        raise _translate_error(problem, path) from None


def check_writable(path: str) -> None:
    """Raise an error, before anything changes, for a file that this user can't or should not change."""
    above = path
    while not os.path.lexists(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    if above != path and not os.path.isdir(above):
        raise Conflict(f"{above} is no folder, so {path} can't be made", hint=f"Move it out of the way. {_HINT}", path=path)
    folder = above if above != path else os.path.dirname(path)
    for place in {folder, above}:
        _check_owned(place, path)


def _check_owned(place: str, path: str) -> None:
    status = os.stat(place)
    if place == path and status.st_uid != os.geteuid():
        raise Denied(f"{path} belongs to another user (number {status.st_uid})", hint=_HINT, path=path)
    if (not status.st_mode & stat.S_IWUSR and status.st_uid == os.geteuid()) or not os.access(place, os.W_OK):
        raise ReadOnly(f"{place} is read-only", hint=f"Make it writable (chmod u+w) and try again. {_HINT}", path=path)


def replace(path: str, before: str | None, after: str | None) -> list[str]:
    """Replace the text that was read, or delete the file; return the folders that were created."""
    made = [] if after is None else _make_folders(os.path.dirname(path))
    try:
        if after is None:
            os.unlink(path)
        else:
            _write(path, before, after)
        sync(os.path.dirname(path))
    except OSError as problem:
        remove_folders(made)
        raise _translate_error(problem, path) from None
    except Conflict:
        remove_folders(made)
        raise
    return made


def _write(path: str, before: str | None, after: str) -> None:
    handle, fresh = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(after.encode())
            file.flush()
            _take_over_mode(path, file.fileno(), fresh, is_new=before is None)
            sync_descriptor(file.fileno())
        if read(path) != before:
            raise Conflict(f"{path} was changed by somebody else at this moment", hint="Try again.", path=path)
        os.rename(fresh, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(fresh)
        raise


def _take_over_mode(path: str, handle: int, fresh: str, *, is_new: bool) -> None:
    if is_new:
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(handle, 0o666 & ~mask)
        return
    shutil.copystat(path, fresh)
    os.utime(handle)


def _make_folders(folder: str) -> list[str]:
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for one in reversed(missing):
        try:
            os.mkdir(one)
        except OSError as problem:
            raise _translate_error(problem, one) from None
    return missing[::-1]


def remove_folders(made: list[str]) -> None:
    """Remove folders that were created for a file, if they are empty."""
    for folder in reversed(made):
        with suppress(OSError):
            os.rmdir(folder)


def _translate_error(problem: OSError, path: str) -> DecklogError:
    import errno

    kinds: dict[int | None, type[DecklogError]] = {
        errno.EACCES: Denied,
        errno.EPERM: Denied,
        errno.EROFS: ReadOnly,
        errno.ENOSPC: DiskFull,
        errno.EDQUOT: DiskFull,
        errno.ENOTDIR: Conflict,
        errno.EEXIST: Conflict,
        errno.ELOOP: Conflict,
    }
    kind = kinds.get(problem.errno, Unavailable)
    return kind(f"{path}: {(problem.strerror or str(problem)).lower()}", hint=_HINT, path=path)
