"""Consents of this user, kept in the user's own settings, where no repository and no sandbox reaches.

A repository's `decklog.toml` may name programs, lower the sandbox and hide values from the redaction. What loosens anything
counts only after this user has consented to exactly that file in exactly that repository.
"""

import os
import pwd

from decklog.core.folders import config_home

_SETTINGS = "accepted-settings"


def has_consent(repository: str, digest: str) -> bool:
    """Check whether this user consented to a settings file, by its digest, in a repository, by its git folder."""
    return [escaped(os.path.realpath(repository)), digest] in read_lines(_SETTINGS)


def give_consent(repository: str, digest: str) -> None:
    """Record that this user consents to a settings file in a repository."""
    if not has_consent(repository, digest):
        append_line(_SETTINGS, [escaped(os.path.realpath(repository)), digest])


def append_line(name: str, words: list[str]) -> None:
    """Add a line to one of the lists of this user's consents."""
    home = config_home()
    os.makedirs(home, mode=0o700, exist_ok=True)
    handle = os.open(os.path.join(home, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write("\t".join(words) + "\n")


def read_lines(name: str) -> list[list[str]]:
    """Read a list of this user's consents, the newest last. Ignore a file that another user could have written."""
    lines: list[list[str]] = []
    for home in (_settings_of_sudo_user(), config_home()):
        try:
            with open(os.path.join(home, name), encoding="utf-8") as file:
                status = os.fstat(file.fileno())
                if is_own(status.st_uid) and not status.st_mode & 0o022:
                    lines += [line.rstrip("\n").split("\t") for line in file]
        except (FileNotFoundError, NotADirectoryError):
            continue
    return lines


def _settings_of_sudo_user() -> str:
    """Return the settings of the user who called sudo: root then acts for that user."""
    user = os.environ.get("SUDO_UID", "")
    if os.geteuid() != 0 or not user.isdecimal():
        return os.devnull
    try:
        return os.path.join(pwd.getpwuid(int(user)).pw_dir, ".config", "decklog")
    except KeyError:
        return os.devnull


def is_own(owner: int) -> bool:
    """Return whether a file's owner is this user, or the one who called sudo."""
    return owner == os.geteuid() or (os.geteuid() == 0 and str(owner) == os.environ.get("SUDO_UID"))


def escaped(text: str) -> str:
    """Escape a path, so that it is one word of a line."""
    return text if text.isprintable() and "\\" not in text else text.encode("unicode_escape").decode("ascii")


def unescaped(text: str) -> str:
    """Decode a path that `escaped` encoded."""
    return text.encode("ascii").decode("unicode_escape") if "\\" in text else text
