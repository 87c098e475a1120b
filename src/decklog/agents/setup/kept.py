"""What was put into files of other programs, so that each can be given back as it was, byte for byte.

Only what was put in is kept, and digests of the rest: settings may hold secrets, and a copy would be one more place for them.
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
    """How a file became what it is: what was put in where, and what else was made for it."""

    before: str | None
    after: str
    insertions: list[Insertion]
    folders: list[str] = field(default_factory=list)

    def undone(self, text: str) -> tuple[bool, str | None]:
        """Return the text as it was, if it still is what the change made of it; None as a text stands for no file."""
        if digest(text) != self.after:
            return False, None
        if self.before is None:
            return True, None
        found = without_insertions(text, self.insertions)
        return found is not None and digest(found) == self.before, found


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class SavedChanges:
    """A folder of changes, a file for each owner's share of a file that was changed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def of(self, path: str, owner: str) -> list[SetupChange]:
        """Return what is known of a file, newest first; what can't be read is as good as nothing."""
        try:
            with open(self._file(path, owner), encoding="utf-8") as file:
                return [_change(**one) for one in json.load(file)["changes"]]
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return []

    def keep(self, path: str, owner: str, changes: list[SetupChange]) -> None:
        """Remember changes, before they are made: should that fail, they fit nothing and do no harm."""
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
