"""Record of the changes to other programs' files, so that each can be restored byte for byte.

Only our insertions and digests of the rest are stored. Settings may contain secrets, which must not be copied.
"""

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from decklog.agents.setup.json_text import Insertion, without_insertions
from decklog.core.disk import sync_descriptor


@dataclass(frozen=True)
class SetupChange:
    """One change of a file: digests before and after, insertions, and created folders."""

    before: str | None
    after: str
    insertions: list[Insertion]
    folders: list[str] = field(default_factory=list)

    def undone(self, text: str) -> tuple[bool, str | None]:
        """Return whether the change can be undone, and the original text; None as text means: no file."""
        if digest(text) != self.after:
            return False, None
        if self.before is None:
            return True, None
        found = without_insertions(text, self.insertions)
        return found is not None and digest(found) == self.before, found


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class SavedChanges:
    """Folder of saved changes, with one file for each part of a changed file."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def of(self, path: str, owner: str) -> list[SetupChange]:
        """Return the saved changes of a file, newest first; empty if they can't be read."""
        try:
            with open(self._file(path, owner), encoding="utf-8") as file:
                return [_change(**one) for one in json.load(file)["changes"]]
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return []

    def keep(self, path: str, owner: str, changes: list[SetupChange]) -> None:
        """Save changes before they are made. If writing the file then fails, they match no text and do no harm."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        fresh = f"{self._file(path, owner)}.new"
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"path": path, "changes": [asdict(change) for change in changes]}, file)
            file.flush()
            sync_descriptor(file.fileno())
        os.rename(fresh, self._file(path, owner))

    def forget(self, path: str, owner: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._file(path, owner))

    def _file(self, path: str, owner: str) -> str:
        name = hashlib.sha256(os.fsencode(path) + b"\0" + os.fsencode(owner)).hexdigest()[:32]
        return os.path.join(self._folder, f"{name}.json")


def _change(before: str | None, after: str, insertions: list[list[object]], folders: list[str]) -> SetupChange:
    return SetupChange(before, after, [(int(str(place)), str(text)) for place, text in insertions], folders)
