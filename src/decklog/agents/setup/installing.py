"""Installation and removal of file parts: idempotent, all or none, and restoring the original text."""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum

from decklog.agents.setup import files
from decklog.agents.setup.json_text import Insertion, without_insertions
from decklog.agents.setup.parts import FilePart
from decklog.core.disk import sync_descriptor


@dataclass(frozen=True)
class SetupChange:
    """One change of a file: digests before and after, insertions, and created folders."""

    before: str | None
    after: str
    insertions: list[Insertion]
    folders: list[str] = field(default_factory=list)

    def revert(self, text: str) -> tuple[bool, str | None]:
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
                changes = json.load(file)["changes"]
            insertions = ([(int(place), str(text)) for place, text in one["insertions"]] for one in changes)
            return [SetupChange(**{**one, "insertions": found}) for one, found in zip(changes, insertions, strict=True)]
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


class SetupState(StrEnum):
    """Setup state of a file."""

    INSTALLED = "installed"
    DIFFERS = "differs"
    MISSING = "missing"


@dataclass(frozen=True)
class SetupStep:
    """Planned change of one file."""

    part: FilePart
    path: str
    before: str | None
    after: str | None
    change: SetupChange | None = None
    # Folders that were created for the file; they are removed with it.
    folders: tuple[str, ...] = ()

    @property
    def is_change(self) -> bool:
        return self.before != self.after


def state_of(part: FilePart) -> SetupState:
    """Return the current state of a part's file."""
    text = files.read(files.real(part.path))
    present = part.present(text) if text else None
    if not present:
        return SetupState.MISSING
    return SetupState.INSTALLED if present == part.wanted else SetupState.DIFFERS


class Installer:
    """Planner of setup steps; all are planned before the first is carried out."""

    def __init__(self, saved_changes: SavedChanges) -> None:
        self._saved_changes = saved_changes

    def plan_installation(self, parts: list[FilePart]) -> list[SetupStep]:
        """Plan the installation of parts. A file that already has its part stays unchanged, in any formatting."""
        return self._plan_in_sequence(parts, self._plan_addition)

    def plan_removal(self, parts: list[FilePart]) -> list[SetupStep]:
        """Plan the removal of parts: restore the original text, or remove our entries if a person edited the file."""
        # Remove in reverse order, so that each part finds the text it produced.
        return self._plan_in_sequence(parts[::-1], self._plan_deletion)

    def _plan_in_sequence(self, parts: list[FilePart], plan: Callable[[FilePart, str, str | None], SetupStep]) -> list[SetupStep]:
        """Plan a step for each part, based on the text that earlier steps produce."""
        texts: dict[str, str | None] = {}
        steps = []
        for part in parts:
            path = files.real(part.path)
            steps.append(plan(part, path, texts[path] if path in texts else files.read(path)))
            texts[path] = steps[-1].after
        return steps

    def carry_out(self, steps: list[SetupStep]) -> None:
        """Carry out the steps, after checking that all files are writable."""
        for step in steps:
            if step.is_change:
                files.check_writable(step.path)
        for step in steps:
            if step.is_change:
                self._carry_out(step)
        # A folder may contain another file of ours until that file is removed too.
        empty_folders = {folder for step in steps if step.after is None for folder in step.folders}
        files.remove_folders(sorted(empty_folders, key=len))

    def _plan_addition(self, part: FilePart, path: str, text: str | None) -> SetupStep:
        if text is not None and part.present(text) == part.wanted:
            return SetupStep(part, path, text, text)
        base, known = self._base(part, path, text)
        insertions = part.insertions(base)
        after = part.completed(base)
        # Our part must be recognised in the new text, or it could never be removed.
        assert part.present(after) == part.wanted, path
        change = SetupChange(None if base is None else digest(base), digest(after), insertions, known.folders if known else [])
        return SetupStep(part, path, text, after, change)

    def _plan_deletion(self, part: FilePart, path: str, text: str | None) -> SetupStep:
        base, known = self._base(part, path, text)
        return SetupStep(part, path, text, base, folders=tuple(known.folders) if known else ())

    def _base(self, part: FilePart, path: str, text: str | None) -> tuple[str | None, SetupChange | None]:
        """Return a file's text without our part, and the saved change that produced the part."""
        if text is None:
            return None, None
        changes = self._saved_changes.of(path, part.owner)
        for change in changes:
            is_undone, before = change.revert(text)
            if is_undone:
                return before, change
        if not part.present(text):
            return text, None
        return part.without(text), changes[0] if changes else None

    def _carry_out(self, step: SetupStep) -> None:
        if step.change is None:
            files.replace(step.path, step.before, step.after)
            self._saved_changes.forget(step.path, step.part.owner)
            return
        owner = step.part.owner
        # Until the file is written, the change that produced its current text is needed, too.
        earlier = [
            change for change in self._saved_changes.of(step.path, owner) if step.before and change.after == digest(step.before)
        ]
        self._saved_changes.keep(step.path, owner, [step.change, *earlier])
        made = files.replace(step.path, step.before, step.after)
        folders = [*step.change.folders, *made]
        self._saved_changes.keep(step.path, owner, [replace(step.change, folders=folders)])
