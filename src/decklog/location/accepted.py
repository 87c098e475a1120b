"""Logs in directories that this user trusts.

A log in a directory may come from a clone, an archive, another user or an agent, and its budgets, approvals and trust would be
believed. It is used only if this user created it with `decklog init` or accepted it. The list of accepted logs is in the user's
settings, which no repository or sandbox can write.
"""

import os
from typing import TYPE_CHECKING

from decklog.core.errors import NotAccepted
from decklog.core.user_consents import append_line, escaped, is_own, read_lines, unescaped

if TYPE_CHECKING:
    from decklog.log import Decklog

NAME = "accepted"
_FILE = "a file"


class Accepted:
    """What this user said yes to in a folder: whose it was, where it led, and when that log was made."""

    def __init__(self, owner: int, leads_to: str, made_at: str) -> None:
        self.owner = owner
        self.leads_to = leads_to
        self.made_at = made_at


def check(inside: str, file: str, address: str | None) -> Accepted:
    """Refuse the log of a folder that this user did not say yes to, or that is another one by now."""
    folder, known = os.path.realpath(inside), None
    for accepted_folder, accepted in _all():
        if accepted_folder == folder:
            known = accepted
    owner = os.stat(folder).st_uid
    if known is None:
        raise _refused(inside, _unknown(inside, owner))
    if owner != known.owner or not _is_owned(file, (known.owner, os.geteuid(), 0)):
        raise _refused(inside, f"the log in {inside} belongs to another user than the one that you said yes to")
    if _leading_to(address) != known.leads_to:
        raise _refused(inside, f"{inside} leads to another log than the one that you said yes to")
    return known


def _is_owned(file: str, owners: "tuple[int, ...]") -> bool:
    """Return whether a log's file belongs to one of these users; a file that is away belongs to nobody else."""
    try:
        return os.stat(file).st_uid in owners
    except FileNotFoundError:
        return True


def check_made(inside: str, known: Accepted, log: "Decklog") -> None:
    """Refuse a log that was put in the place of the accepted one, as a pull does with a file that a repository ships."""
    if known.leads_to == _FILE and log.db.made_at() != known.made_at:
        raise _refused(inside, f"the log in {inside} is not the one that you said yes to: it was made at another time")


def accept(inside: str, address: str | None, made_at: str) -> None:
    """Remember that this user said yes to the log that a folder has now."""
    folder = os.path.realpath(inside)
    append_line(NAME, [escaped(folder), str(os.stat(folder).st_uid), _leading_to(address), made_at])


def _all() -> "list[tuple[str, Accepted]]":
    """Read which logs were accepted, the newest last."""
    lines = read_lines(NAME)
    return [(unescaped(words[0]), Accepted(int(words[1]), words[2], words[3])) for words in lines if len(words) == 4]


def _leading_to(address: str | None) -> str:
    """Spell where a folder leads without showing it: an address may hold a password."""
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
