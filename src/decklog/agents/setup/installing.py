"""Installation and removal of file parts: idempotent, all or none, and restoring the original text."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from decklog.agents.setup import files
from decklog.agents.setup.kept import SavedChanges, SetupChange, digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from decklog.agents.setup.parts import FilePart


class SetupState(StrEnum):
    """Setup state of a file."""

    INSTALLED = "installed"
    DIFFERS = "differs"
    MISSING = "missing"


@dataclass(frozen=True)
class SetupStep:
    """Planned change of one file."""

    part: "FilePart"
    path: str
    before: str | None
    after: str | None
    change: SetupChange | None = None
    # Folders that were created for the file; they are removed with it.
    folders: tuple[str, ...] = ()

    @property
    def is_change(self) -> bool:
        return self.before != self.after


def state_of(part: "FilePart") -> SetupState:
    """Return the current state of a part's file."""
    text = files.read(files.real(part.path))
    present = part.present(text) if text else None
    if not present:
        return SetupState.MISSING
    return SetupState.INSTALLED if present == part.wanted else SetupState.DIFFERS


class Installer:
    """Planner of setup steps; all are planned before the first is carried out."""

    def __init__(self, kept: SavedChanges) -> None:
        self._kept = kept

    def putting_in(self, parts: "list[FilePart]") -> list[SetupStep]:
        """Plan the installation of parts. A file that already has its part stays unchanged, in any formatting."""
        return self._one_after_the_other(parts, self._put_in)

    def taking_out(self, parts: "list[FilePart]") -> list[SetupStep]:
        """Plan the removal of parts: restore the original text, or remove our entries if a person edited the file."""
        # Remove in reverse order, so that each part finds the text it produced.
        return self._one_after_the_other(parts[::-1], self._take_out)

    def _one_after_the_other(
        self, parts: "list[FilePart]", plan: "Callable[[FilePart, str, str | None], SetupStep]"
    ) -> list[SetupStep]:
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
        gone = {folder for step in steps if step.after is None for folder in step.folders}
        files.remove_folders(sorted(gone, key=len))

    def _put_in(self, part: "FilePart", path: str, text: str | None) -> SetupStep:
        if text is not None and part.present(text) == part.wanted:
            return SetupStep(part, path, text, text)
        base, known = self._base(part, path, text)
        insertions = part.insertions(base)
        after = part.completed(base)
        # Our part must be recognised in the new text, or it could never be removed.
        assert part.present(after) == part.wanted, path
        folders = known.folders if known else []
        return SetupStep(
            part, path, text, after, SetupChange(base if base is None else digest(base), digest(after), insertions, folders)
        )

    def _take_out(self, part: "FilePart", path: str, text: str | None) -> SetupStep:
        base, known = self._base(part, path, text)
        return SetupStep(part, path, text, base, folders=tuple(known.folders) if known else ())

    def _base(self, part: "FilePart", path: str, text: str | None) -> tuple[str | None, SetupChange | None]:
        """Return a file's text without our part, and the saved change that produced the part."""
        if text is None:
            return None, None
        changes = self._kept.of(path, part.owner)
        for change in changes:
            is_undone, before = change.undone(text)
            if is_undone:
                return before, change
        if not part.present(text):
            return text, None
        return part.without(text), changes[0] if changes else None

    def _carry_out(self, step: SetupStep) -> None:
        if step.change is None:
            files.replace(step.path, step.before, step.after)
            self._kept.forget(step.path, step.part.owner)
            return
        owner = step.part.owner
        # Until the file is written, the change that produced its current text is needed, too.
        earlier = [change for change in self._kept.of(step.path, owner) if step.before and change.after == digest(step.before)]
        self._kept.keep(step.path, owner, [step.change, *earlier])
        made = files.replace(step.path, step.before, step.after)
        folders = [*step.change.folders, *made]
        self._kept.keep(step.path, owner, [SetupChange(step.change.before, step.change.after, step.change.insertions, folders)])
