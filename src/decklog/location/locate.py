"""Find the log: by name, by the environment, or in a folder above, as git finds `.git`; else use the user's log."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from decklog.core.errors import NotAccepted, NotFound
from decklog.core.folders import data_home
from decklog.core.user_consents import append_line, escaped, is_own, read_lines, unescaped

if TYPE_CHECKING:
    from decklog.log import Decklog

FOLDER = ".decklog"
FILE = "decklog.db"
ADDRESS = "address"
# Suffix of the directory next to a log in which hooks leave events.
SPOOL = "spool"


class LogLocation:
    """A log's target and how it was found."""

    def __init__(self, target: str, reason: str, *, is_named: bool = False, folder: str | None = None) -> None:
        self.target = target
        self.reason = reason
        # The directory with the `.decklog` that names the log.
        self.folder = folder
        # Whether the call or the environment names the log.
        self.is_named = is_named

    @property
    def is_server(self) -> bool:
        return self.target.startswith(("postgresql://", "postgres://"))

    @property
    def shown(self) -> str:
        """The target without a password, so that it may be shown."""
        return without_password(self.target) if self.is_server else self.target

    @property
    def path(self) -> str:
        return os.path.expanduser(self.target.removeprefix("sqlite:///"))

    @property
    def exists(self) -> bool:
        # Opening an unknown kind of address raises the error.
        return self.is_server or "://" in self.path or os.path.exists(self.path)

    @property
    def is_read_only(self) -> bool:
        """Whether this user can't write the log file or create files next to it."""
        if self.is_server or not os.path.exists(self.path):
            return False
        folder = os.path.dirname(os.path.abspath(self.path))
        names = ("",) if os.access(folder, os.W_OK) else ("", "-wal", "-shm", "-lock")
        return not all(os.access(self.path + name, os.W_OK) for name in names)

    def must_exist(self) -> None:
        """Raise NotFound if the log is missing. Check first that this user accepted it."""
        self.check()
        if not self.exists:
            raise NotFound(
                f"there is no log at {self.path} ({self.reason})",
                hint="Run `decklog init` to create one here, or name one with --db.",
                path=self.path,
            )

    def open(self, **settings: Any) -> "Decklog":
        """Open the log. This user must have accepted it if it was found in a folder."""
        from decklog.log import Decklog

        known = self.check()
        log = Decklog.open(self.target, **settings)
        if known is not None:
            try:
                check_creation_time(self._inside, known, log)
            except NotAccepted:
                log.close()
                raise
        return log

    def check(self) -> "Accepted | None":
        """Raise NotAccepted for a log in a folder that this user has not accepted. A log given by name needs no check."""
        if self.folder is None:
            return None

        address = os.path.join(self._inside, ADDRESS)
        has_address = os.path.isfile(address)
        return check(self._inside, address if has_address else self.path, self.target if has_address else None)

    def accept(self) -> None:
        """Record that this user accepts the log that the folder has now."""
        from decklog.log import Decklog

        if os.path.isfile(os.path.join(self._inside, ADDRESS)):
            accept(self._inside, self.target, "-")
            return
        with Decklog.open(self.target, read_only=True) as log:
            accept(self._inside, None, log.db.made_at())

    @property
    def _inside(self) -> str:
        assert self.folder is not None
        return os.path.join(self.folder, FOLDER)


def without_password(address: str) -> str:
    """Return an address with its passwords replaced by stars."""
    scheme, _, rest = address.partition("://")
    place, question, settings = rest.partition("?")
    # A password may contain @ unescaped, so the last @ precedes the host.
    credentials, at, host = place.rpartition("@")
    user, colon, _ = credentials.partition(":")
    named = [part.partition("=") for part in settings.split("&")]
    parts = [f"{name}=***" if "password" in name.lower() else name + equals + value for name, equals, value in named]
    return f"{scheme}://{user}{colon}{'***' if colon else ''}{at}{host}{question}{'&'.join(parts)}"


def locate(named: str | None, folder: str | None = None, environment: Mapping[str, str] | None = None) -> LogLocation:
    """Return the location of the log to use in a folder."""
    if named:
        return LogLocation(named, "named with --db", is_named=True)
    if address := (os.environ if environment is None else environment).get("DECKLOG_DB"):
        return LogLocation(address, "from the environment variable DECKLOG_DB", is_named=True)
    start = folder or os.getcwd()
    for above in _parent_folders(start):
        if (place := find_in_folder(above)) is not None:
            return place
    main = _main_worktree(start)
    if main is not None and (place := find_in_folder(main)) is not None:
        return LogLocation(place.target, f"{place.reason}, the main worktree of this one", folder=main)
    if (root := main or repository(start)) is not None:
        # The work of a project only goes into the user's shared log if the user chose so.
        return LogLocation(os.path.join(root, FOLDER, FILE), f"the repository {root} has no log yet")
    return user_log()


def locate_session_log(folder: str, environment: Mapping[str, str], named: str | None = None) -> LogLocation | None:
    """Return the log that records an agent's session in a folder; None if there is none, or only the user's log."""
    place = locate(named, folder if os.path.isdir(folder) or not _has_working_folder() else None, environment)
    if not place.is_named and place.target == user_log().target:
        return None
    if place.exists:
        return place
    # The log file is missing, for example during a restore. A spool shows that sessions are recorded here: keep their events.
    if not os.path.isdir(sibling_path(place, SPOOL)):
        return None
    holder = None if place.is_named else os.path.dirname(os.path.dirname(os.path.abspath(place.path)))
    return LogLocation(place.target, "its file is missing", is_named=place.is_named, folder=holder)


def _has_working_folder() -> bool:
    """Return whether this process's working folder exists: an agent may have removed it."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def find_project_log(folder: str) -> LogLocation | None:
    """Return the log of a folder's repository or worktree; outside of one, the log in the folder or the nearest above."""
    found = locate(None, folder, environment={})
    root = repository(folder)
    if found.folder is None or root is None or found.folder == _main_worktree(folder):
        return found if found.folder else None
    return found if os.path.commonpath([root, found.folder]) == root else None


def user_log() -> LogLocation:
    """Return the user's log: it records work outside of repositories and folders with a log."""
    return LogLocation(os.path.join(data_home(), FILE), "the user's log, because no folder above has a .decklog")


def sibling_path(place: LogLocation, name: str) -> str:
    """Return the path of a log's directory: next to its file or address file, or in the user's data directory."""
    if not place.is_server:
        return f"{os.path.abspath(place.path)}-{name}"
    from hashlib import sha256

    digest = sha256(place.target.encode(errors="surrogateescape")).hexdigest()[:16]
    home = os.path.join(place.folder, FOLDER) if place.folder else data_home()
    return os.path.join(home, name, digest)


def spool_folder(place: LogLocation) -> str:
    """Return the folder of a log's waiting events; raise NotAccepted if this user did not accept the log."""
    place.check()
    return sibling_path(place, SPOOL)


def find_log_above() -> str | None:
    """Return the log named by the environment or found in a folder above; None if there is none, or only the user's log."""
    place = locate(None)
    place.check()
    return place.target if place.is_named or (place.exists and place.target != user_log().target) else None


def find_in_folder(folder: str) -> LogLocation | None:
    """Return the log in a folder's `.decklog`, or the log whose address is stored there; None without one."""
    inside = os.path.join(folder, FOLDER)
    address = os.path.join(inside, ADDRESS)
    if os.path.isfile(address):
        with open(address, encoding="utf-8") as file:
            return LogLocation(file.read().strip(), f"the address in {address}", folder=folder)
    if os.path.isfile(os.path.join(inside, FILE)):
        return LogLocation(os.path.join(inside, FILE), f"found in {inside}", folder=folder)
    return None


def repository(folder: str) -> str | None:
    """Return the root of the git repository, or of the worktree, that a folder is in."""
    return next((above for above in _parent_folders(folder) if os.path.exists(os.path.join(above, ".git"))), None)


def main_repository(folder: str) -> str | None:
    """Return the root of the repository that a folder is in; for a linked worktree, the root of the main one."""
    return _main_worktree(folder) or repository(folder)


def _parent_folders(folder: str) -> list[str]:
    folders = [os.path.abspath(folder)]
    while (parent := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(parent)
    return folders


def _main_worktree(folder: str) -> str | None:
    """Return the main worktree of a linked one: its `.git` is a file that points into the main one's."""
    for above in _parent_folders(folder):
        pointer = os.path.join(above, ".git")
        if os.path.isdir(pointer):
            return None
        if os.path.isfile(pointer):
            with open(pointer, encoding="utf-8", errors="replace") as file:
                target = file.read().removeprefix("gitdir:").strip()
            target = os.path.normpath(os.path.join(above, target))
            head, found, _ = target.partition(f"{os.sep}.git{os.sep}worktrees{os.sep}")
            return head if found and _is_registered_worktree(target, pointer) else None
    return None


def _is_registered_worktree(git_folder: str, pointer: str) -> bool:
    """Return whether the main repository has registered this `.git` file; the file alone could be forged."""
    try:
        with open(os.path.join(git_folder, "gitdir"), encoding="utf-8", errors="replace") as file:
            named = file.read().strip()
    except OSError:
        return False
    return os.path.realpath(os.path.join(git_folder, named)) == os.path.realpath(pointer)


def outside_path(folder: str) -> str:
    """Return the path for a directory's log in the user's data directory, out of reach of others who write to the directory."""
    import hashlib

    real = os.path.realpath(folder)
    name = f"{os.path.basename(real)}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"
    return os.path.join(data_home(), "outside", name, FILE)


NAME = "accepted"
_FILE = "a file"


class Accepted:
    """A log that this user accepted in a folder: the folder's owner, the target, and the log's creation time."""

    def __init__(self, owner: int, leads_to: str, made_at: str) -> None:
        self.owner = owner
        self.leads_to = leads_to
        self.made_at = made_at


def check(inside: str, file: str, address: str | None) -> Accepted:
    """Raise NotAccepted if this user has not accepted the log of a folder, or if it was replaced since."""
    folder, known = os.path.realpath(inside), None
    for accepted_folder, accepted in _read_accepted():
        if accepted_folder == folder:
            known = accepted
    owner = os.stat(folder).st_uid
    if known is None:
        raise _build_refusal(inside, _explain_unaccepted(inside, owner))
    if owner != known.owner or not _is_owned(file, (known.owner, os.geteuid(), 0)):
        raise _build_refusal(inside, f"the log in {inside} belongs to another user than the one that you accepted")
    if _target_digest(address) != known.leads_to:
        raise _build_refusal(inside, f"{inside} leads to another log than the one that you accepted")
    return known


def _is_owned(file: str, owners: tuple[int, ...]) -> bool:
    """Return whether a log's file belongs to one of these users; True for a missing file."""
    try:
        return os.stat(file).st_uid in owners
    except FileNotFoundError:
        return True


def check_creation_time(inside: str, known: Accepted, log: "Decklog") -> None:
    """Raise NotAccepted for a log that replaced the accepted one, for example by a pull of a repository with a log."""
    if known.leads_to == _FILE and log.db.made_at() != known.made_at:
        raise _build_refusal(inside, f"the log in {inside} is not the one that you accepted: it was created at another time")


def accept(inside: str, address: str | None, made_at: str) -> None:
    """Record that this user accepts the log that a folder has now."""
    folder = os.path.realpath(inside)
    append_line(NAME, [escaped(folder), str(os.stat(folder).st_uid), _target_digest(address), made_at])


def _read_accepted() -> "list[tuple[str, Accepted]]":
    """Return the accepted logs with their folders, newest last."""
    lines = read_lines(NAME)
    return [(unescaped(words[0]), Accepted(int(words[1]), words[2], words[3])) for words in lines if len(words) == 4]


def _target_digest(address: str | None) -> str:
    """Return a digest of the address, because it may contain a password."""
    if address is None:
        return _FILE
    import hashlib

    return hashlib.sha256(address.encode()).hexdigest()


def _explain_unaccepted(inside: str, owner: int) -> str:
    if not is_own(owner):
        return f"the log in {inside} belongs to {_name_of(owner)}, not to you"
    return f"the log in {inside} was not created by you: it may come from a clone, an archive or an agent"


def _name_of(owner: int) -> str:
    import pwd

    try:
        return f"the user {pwd.getpwuid(owner).pw_name}"
    except KeyError:
        return f"the user with number {owner}"


def _build_refusal(inside: str, why: str) -> NotAccepted:
    return NotAccepted(
        f"{why}; it was not used",
        hint=f"If you trust its origin: decklog accept {os.path.dirname(inside)}. "
        "Otherwise remove it, create your own further down (decklog init .), or name another with --db or DECKLOG_DB.",
        folder=inside,
    )
