"""Consents of this user to the settings that repositories bring along.

A repository's `decklog.toml` may name programs and lower the sandbox. What loosens anything counts only after this user has
consented to exactly that file in exactly that repository. Consents are stored with the accepted logs, out of reach of
repositories and sandboxes.
"""

import os

from decklog.location.accepted import append_line, escaped, read_lines

NAME = "accepted-settings"


def has_consent(repository: str, digest: str) -> bool:
    """Check whether this user consented to a settings file, by its digest, in a repository, by its git folder."""
    return [escaped(os.path.realpath(repository)), digest] in read_lines(NAME)


def give_consent(repository: str, digest: str) -> None:
    """Record that this user consents to a settings file in a repository."""
    if not has_consent(repository, digest):
        append_line(NAME, [escaped(os.path.realpath(repository)), digest])
