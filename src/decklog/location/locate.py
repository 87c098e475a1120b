"""Finds the log as git finds `.git`: named, from the environment, in a folder above; outside of repositories, the user's own."""

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
        # By this call or the environment, rather than found.
        self.is_named = is_named

    @property
    def is_server(self) -> bool:
        return self.target.startswith(("postgresql://", "postgres://"))

    @property
    def shown(self) -> str:
        """The target as anybody may see it: an address without its password."""
        return without_password(self.target) if self.is_server else self.target

    @property
    def path(self) -> str:
        return os.path.expanduser(self.target.removeprefix("sqlite:///"))

    @property
    def exists(self) -> bool:
        # An address that no engine knows is for opening to refuse.
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
                hint="Run `decklog init` to make one here, or name one with --db.",
                path=self.path,
            )

    def open(self, **settings: Any) -> "Decklog":
        """Open the log. One that was found in a folder must have been accepted by this user."""
        from decklog.log import Decklog

        known = self.check()
        log = Decklog.open(self.target, **settings)
        if known is not None:
            try:
                check_made(self._inside, known, log)
            except NotAccepted:
                log.close()
                raise
        return log

    def check(self) -> "Accepted | None":
        """Refuse a log that was found in a folder and that this user has not accepted. A log given by name needs no check."""
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
    """Replace the passwords of an address by stars."""
    scheme, _, rest = address.partition("://")
    place, question, settings = rest.partition("?")
    # A password may hold any sign that was not escaped; the last @ is the one before the host.
    who, at, host = place.rpartition("@")
    user, colon, _ = who.partition(":")
    named = [part.partition("=") for part in settings.split("&")]
    parts = [f"{name}=***" if "password" in name.lower() else name + equals + value for name, equals, value in named]
    return f"{scheme}://{user}{colon}{'***' if colon else ''}{at}{host}{question}{'&'.join(parts)}"


def locate(named: str | None, folder: str | None = None, environment: Mapping[str, str] | None = None) -> LogLocation:
    """Find the log to use in a folder."""
    if named:
        return LogLocation(named, "named with --db", is_named=True)
    if address := (os.environ if environment is None else environment).get("DECKLOG_DB"):
        return LogLocation(address, "from the environment variable DECKLOG_DB", is_named=True)
    start = folder or os.getcwd()
    for above in _upwards(start):
        if (place := in_folder(above)) is not None:
            return place
    main = _main_worktree(start)
    if main is not None and (place := in_folder(main)) is not None:
        return LogLocation(place.target, f"{place.reason}, the main worktree of this one", folder=main)
    if (root := main or repository(start)) is not None:
        # Work of one project never goes into a log that all of them share without anybody having said so.
        return LogLocation(os.path.join(root, FOLDER, FILE), f"the repository {root} has no log yet")
    return users_own()


def of_session(folder: str, environment: Mapping[str, str], named: str | None = None) -> LogLocation | None:
    """Find the log that an agent's session in a folder is recorded in; None where there is none, or only the user's own."""
    place = locate(named, folder if os.path.isdir(folder) or not _has_folder() else None, environment)
    if not place.is_named and place.target == users_own().target:
        return None
    if place.exists:
        return place
    # The log file is missing, for example during a restore. A spool shows that sessions are recorded here: keep their events.
    if not os.path.isdir(beside(place, SPOOL)):
        return None
    holder = None if place.is_named else os.path.dirname(os.path.dirname(os.path.abspath(place.path)))
    return LogLocation(place.target, "its file is away", is_named=place.is_named, folder=holder)


def _has_folder() -> bool:
    """Return whether the folder that this process is in is still there: an agent may have removed the one that it works in."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def own_log(folder: str) -> LogLocation | None:
    """Return the log of a folder's repository or worktree; outside of one, that of the folder or the nearest above."""
    found = locate(None, folder, environment={})
    root = repository(folder)
    if found.folder is None or root is None or found.folder == _main_worktree(folder):
        return found if found.folder else None
    return found if os.path.commonpath([root, found.folder]) == root else None


def users_own() -> LogLocation:
    """The log of everything that is done outside of repositories and folders with a log."""
    return LogLocation(os.path.join(data_home(), FILE), "the user's own, since no folder above has a .decklog")


def beside(place: LogLocation, name: str) -> str:
    """Return the path of a directory that belongs to a log: next to its file or address file, or in the user's directory."""
    if not place.is_server:
        return f"{os.path.abspath(place.path)}-{name}"
    from hashlib import sha256

    digest = sha256(place.target.encode(errors="surrogateescape")).hexdigest()[:16]
    home = os.path.join(place.folder, FOLDER) if place.folder else data_home()
    return os.path.join(home, name, digest)


def spool_folder(place: LogLocation) -> str:
    """Return the folder where events wait for a log; raise NotAccepted for one that this user did not accept."""
    place.check()
    return beside(place, SPOOL)


def found_above() -> str | None:
    """Return the log that the environment names or a folder above has; None where there is none, or only the user's own."""
    place = locate(None)
    place.check()
    return place.target if place.is_named or (place.exists and place.target != users_own().target) else None


def in_folder(folder: str) -> LogLocation | None:
    """Return the log that a folder itself has, in its `.decklog`: its own, or one elsewhere that it remembers."""
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
    return next((above for above in _upwards(folder) if os.path.exists(os.path.join(above, ".git"))), None)


def main_repository(folder: str) -> str | None:
    """Return the root of the repository that a folder is in; for a linked worktree, the root of the main one."""
    return _main_worktree(folder) or repository(folder)


def _upwards(folder: str) -> list[str]:
    folders = [os.path.abspath(folder)]
    while (parent := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(parent)
    return folders


def _main_worktree(folder: str) -> str | None:
    """Return the main worktree of a linked one: its `.git` is a file that points into the main one's."""
    for above in _upwards(folder):
        pointer = os.path.join(above, ".git")
        if os.path.isdir(pointer):
            return None
        if os.path.isfile(pointer):
            with open(pointer, encoding="utf-8", errors="replace") as file:
                target = file.read().removeprefix("gitdir:").strip()
            target = os.path.normpath(os.path.join(above, target))
            head, found, _ = target.partition(f"{os.sep}.git{os.sep}worktrees{os.sep}")
            return head if found and _points_back(target, pointer) else None
    return None


def _points_back(git_folder: str, pointer: str) -> bool:
    """Return whether a worktree's folder in the main repository names this `.git` file; anybody can write the file alone."""
    try:
        with open(os.path.join(git_folder, "gitdir"), encoding="utf-8", errors="replace") as file:
            named = file.read().strip()
    except OSError:
        return False
    return os.path.realpath(os.path.join(git_folder, named)) == os.path.realpath(pointer)


def outside_of(folder: str) -> str:
    """Return the location of a directory's log in the user's data directory, which other writers of the directory can't reach."""
    import hashlib

    real = os.path.realpath(folder)
    name = f"{os.path.basename(real)}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"
    return os.path.join(data_home(), "outside", name, FILE)


NAME = "accepted"
_FILE = "a file"


class Accepted:
    """A log that this user accepted in a folder: its owner, where it leads, and when it was created."""

    def __init__(self, owner: int, leads_to: str, made_at: str) -> None:
        self.owner = owner
        self.leads_to = leads_to
        self.made_at = made_at


def check(inside: str, file: str, address: str | None) -> Accepted:
    """Refuse the log of a folder if this user has not accepted it, or if it was replaced since."""
    folder, known = os.path.realpath(inside), None
    for accepted_folder, accepted in _all():
        if accepted_folder == folder:
            known = accepted
    owner = os.stat(folder).st_uid
    if known is None:
        raise _refused(inside, _unknown(inside, owner))
    if owner != known.owner or not _is_owned(file, (known.owner, os.geteuid(), 0)):
        raise _refused(inside, f"the log in {inside} belongs to another user than the one that you accepted")
    if _leading_to(address) != known.leads_to:
        raise _refused(inside, f"{inside} leads to another log than the one that you accepted")
    return known


def _is_owned(file: str, owners: tuple[int, ...]) -> bool:
    """Return whether a log's file belongs to one of these users; a file that is away belongs to nobody else."""
    try:
        return os.stat(file).st_uid in owners
    except FileNotFoundError:
        return True


def check_made(inside: str, known: Accepted, log: "Decklog") -> None:
    """Refuse a log that replaced the accepted one, for example by a pull from a repository that contains a log."""
    if known.leads_to == _FILE and log.db.made_at() != known.made_at:
        raise _refused(inside, f"the log in {inside} is not the one that you accepted: it was created at another time")


def accept(inside: str, address: str | None, made_at: str) -> None:
    """Record that this user accepts the log that a folder has now."""
    folder = os.path.realpath(inside)
    append_line(NAME, [escaped(folder), str(os.stat(folder).st_uid), _leading_to(address), made_at])


def _all() -> "list[tuple[str, Accepted]]":
    """Read which logs were accepted, the newest last."""
    lines = read_lines(NAME)
    return [(unescaped(words[0]), Accepted(int(words[1]), words[2], words[3])) for words in lines if len(words) == 4]


def _leading_to(address: str | None) -> str:
    """Return a digest of the address, which may hold a password."""
    if address is None:
        return _FILE
    import hashlib

    return hashlib.sha256(address.encode()).hexdigest()


def _unknown(inside: str, owner: int) -> str:
    if not is_own(owner):
        return f"the log in {inside} belongs to {_name_of(owner)}, not to you"
    return f"the log in {inside} was not made there by you: it may have come with a clone or an archive, or be an agent's"


def _name_of(owner: int) -> str:
    import pwd

    try:
        return f"the user {pwd.getpwuid(owner).pw_name}"
    except KeyError:
        return f"the user of number {owner}"


def _refused(inside: str, why: str) -> NotAccepted:
    return NotAccepted(
        f"{why}; it was not used",
        hint=f"If you know where it comes from: decklog accept {os.path.dirname(inside)}. "
        "Otherwise remove it, make one of your own further down (decklog init .), or name another with --db or DECKLOG_DB.",
        folder=inside,
    )
