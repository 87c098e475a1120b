"""Inspects a SQLite file without opening it: engine, place, permissions, and the processes that hold its locks."""

import errno
import os
import stat
from contextlib import suppress
from enum import StrEnum
from threading import get_ident

import apsw

from decklog.core.errors import (
    DecklogError,
    Denied,
    DiskFull,
    EngineTooOld,
    Invalid,
    NetworkFilesystem,
    NotADatabase,
    ReadOnly,
    Unavailable,
)

# Up to 3.51.2, a WAL database that several processes write and checkpoint can be corrupted (the "WAL-reset bug").
OLDEST_ENGINE = (3, 51, 3)
APPLICATION_ID = 0x444B4C47
_SMALLEST = 512
# By the kernel's own names; those that run as programs have `fuse.` before theirs.
_NETWORK = frozenset(
    (
        *("9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "glusterfs", "gpfs", "lustre"),
        *("ncpfs", "nfs", "nfs4", "orangefs", "prl_fs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "vmhgfs"),
    )
)
_NETWORK_PROGRAMS = frozenset(
    (
        *("afp", "beegfs", "blobfuse", "blobfuse2", "ceph", "ceph-fuse", "curlftpfs", "davfs", "davfs2", "gcsfuse"),
        *("glusterfs", "goofys", "gvfsd-fuse", "juicefs", "lizardfs", "mfs", "moosefs", "mount-s3", "mountpoint-s3"),
        *("portal", "rclone", "s3backer", "s3fs", "s3ql", "seaweedfs", "smbnetfs", "sshfs", "vmhgfs-fuse"),
    )
)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_SPENT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class FileState(StrEnum):
    MISSING = "missing"
    EMPTY = "empty"
    DATABASE = "database"


def path_of(text: str) -> str:
    """Read a path or a `sqlite:///` address."""
    if text.startswith("sqlite:///"):
        text = text.removeprefix("sqlite:///")
    elif "://" in text:
        # Show only the engine of an address: it may hold a password.
        engine = text.partition("://")[0]
        raise Invalid(f"'{engine}://…' names no engine Decklog knows; use a path, sqlite:///PATH or postgresql://…")
    if not text.strip() or "\x00" in text:
        raise Invalid("a log needs a path")
    return os.path.expanduser(text)


def address_of(path: str, *, still: bool = False) -> str:
    """Spell a path as SQLite's own kind of address; a file that is `still` is read without locks or additional files."""
    return "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + ("?immutable=1" if still else "")


def check_engine(version: str | None = None) -> None:
    """Refuse a SQLite that is known to corrupt shared files."""
    text = version or apsw.sqlite_lib_version()
    if tuple(int(part) for part in text.split(".")[:3]) < OLDEST_ENGINE:
        oldest = ".".join(map(str, OLDEST_ENGINE))
        raise EngineTooOld(
            f"this apsw carries SQLite {text}, which can corrupt a log that several processes write; {oldest} or newer is needed",
            hint="Run: pip install --upgrade apsw",
            found=text,
            needed=oldest,
        )


def look(path: str) -> FileState:
    """Return what is at a path, without opening it.

    Closing a file drops all of a process's POSIX locks on it, those of SQLite connections to the same file too; so only SQLite
    may open it, and decides whether it is a database.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return FileState.MISSING
    except OSError as problem:
        raise unusable(path, problem) from None
    if stat.S_ISDIR(status.st_mode):
        raise Invalid(f"{path} is a folder; name a file in it, such as {path}/decklog.db")
    if not stat.S_ISREG(status.st_mode):
        raise Invalid(f"{path} is not a file; a log needs one")
    if not os.access(path, os.R_OK):
        raise Denied(f"{path} can't be read by this user", hint="Check the file's owner and permissions.")
    if 0 < status.st_size < _SMALLEST:
        # SQLite itself takes a file of one byte for an empty one.
        raise NotADatabase(f"{path} is not a SQLite database, and was left as it is", hint="Name another file.", path=path)
    return FileState.DATABASE if status.st_size else FileState.EMPTY


def lacks_wal_index(path: str) -> bool:
    """Return whether there are commits in the write-ahead log and no shared memory file with its index."""
    return has_wal(path) and not os.path.exists(f"{path}-shm")


def no_wal_index(path: str) -> Denied:
    """Build the error for a reader who may not create the shared memory file."""
    name = os.path.basename(path)
    return Denied(
        f"{path} has commits in its write-ahead log; to read them, SQLite must create {name}-shm, and this user may not",
        hint=f"Open it once as its owner, or copy it together with {name}-wal to a folder of yours.",
        path=path,
    )


def has_wal(path: str) -> bool:
    """Return whether a file has a write-ahead log with anything in it."""
    try:
        return os.stat(f"{path}-wal").st_size > 0
    except OSError:
        return False


def make_file(path: str) -> None:
    """Make the file and its folder so that only their owner can read them; a file that is there is left alone."""
    draft = f"{path}.{os.getpid()}.{get_ident()}.new"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        # It gets its name only now that no descriptor of ours is left to be closed (see `look`).
        with suppress(FileExistsError):
            os.link(draft, path)
        os.unlink(draft)
    except OSError as problem:
        raise unusable(path, problem) from None


def unusable(path: str, problem: OSError) -> DecklogError:
    """Return the Decklog error for a file that the system refuses."""
    what = f"{path} can't be used: {problem.strerror or problem}"
    if problem.errno in _FULL:
        return DiskFull(what, hint="Free some space and try again.", path=path)
    if problem.errno in _SPENT:
        return Unavailable(what, hint="Close some files, or raise the limit (ulimit -n).", path=path)
    if problem.errno == errno.EROFS:
        return ReadOnly(what, hint="Open the log with read_only, or name a place that can be written to.", path=path)
    kind = Denied if isinstance(problem, PermissionError) else Invalid
    return kind(what, hint="Name a place that this user can write to.", path=path)


def filesystem_of(path: str, mounts: str = "/proc/self/mounts") -> str | None:
    """Return the type of the file system of a path; None where it is unknown."""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.split(" ")[1:3] for line in file]
    except FileNotFoundError:
        return None
    real = os.path.realpath(path)
    best, kind = "", None
    for place, name in rows:
        place = place.replace("\\040", " ")
        inside = real == place or real.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best):
            best, kind = place, name
    return kind


def is_network(kind: str | None) -> bool:
    """Return whether a type of file system lies behind a network, where another machine may write too."""
    name = (kind or "").lower()
    return name in _NETWORK or name.removeprefix("fuse.") in _NETWORK_PROGRAMS


def check_place(path: str, *, allow_network: bool, mounts: str = "/proc/self/mounts") -> None:
    """Refuse a name that SQLite can't spell, and a network file system: its locks can't be trusted, and writes would be lost."""
    try:
        path.encode()
    except UnicodeEncodeError:
        # SQLite knows files by names in UTF-8 alone.
        shown = path.encode(errors="backslashreplace").decode()
        raise Invalid(
            f"{shown} has bytes in its name that are no UTF-8", hint="Rename the folder, or keep the log elsewhere."
        ) from None
    kind = None if allow_network else filesystem_of(path, mounts)
    if is_network(kind):
        raise NetworkFilesystem(
            f"{path} lies on a network file system ({kind}), where SQLite's locks can't be trusted",
            hint="Use a local disk or PostgreSQL; set DECKLOG_ALLOW_NETWORK_FS=1 if you know its locks work.",
            path=path,
            filesystem=kind,
        )


def holders_of(path: str, table: str = "/proc/locks") -> list[dict[str, object]]:
    """List the locks that other processes hold on a file: pid, command and whether it is exclusive. Needs /proc/locks."""
    try:
        status = os.stat(path)
        with open(table, encoding="ascii", errors="replace") as file:
            lines = [line.replace("->", "").split() for line in file]
    except FileNotFoundError:
        return []
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    found: dict[int, dict[str, object]] = {}
    for words in lines:
        if len(words) >= 8 and words[5] == place and (pid := int(words[4])) not in (0, -1, os.getpid()):
            exclusive = words[3] == "WRITE"
            known = found.setdefault(pid, {"pid": pid, "command": _command(pid), "exclusive": exclusive})
            known["exclusive"] = known["exclusive"] or exclusive
    return list(found.values())


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode(errors="replace").strip()[:200]
