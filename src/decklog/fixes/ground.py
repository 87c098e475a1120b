"""What all steps of mending share: the log, the repository, the rules of the base, and whom to ask."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from decklog.conductor.checks.running import Runner
from decklog.conductor.git.repository import HOME, Repository, ref_part, starting_commit
from decklog.conductor.git.workspaces import remove_folder
from decklog.conductor.settings import NAME, require_consent
from decklog.conductor.side_effects import SideEffects
from decklog.fixes import settings as mend_settings
from decklog.models.composer import Composer
from decklog.models.providers.making import maker
from decklog.models.seam import Models
from decklog.review import settings as review_settings
from decklog.review.change import Change, between

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.models.provider import Provider
    from decklog.models.settings import ModelChoice
    from decklog.review.settings import ReviewSettings
    from decklog.stores.approvals.feedback import Feedback
    from decklog.stores.workflow.mends import Mend


def newest_base(repository: Repository, cwd: Path) -> str:
    """Choose what a fix starts from: the branch that changes are published against, or what is checked out."""
    head = starting_commit(repository, "HEAD", cwd=cwd)
    named = review_settings.read(repository.read(head, NAME)).rules.base
    return (repository.resolve(named, cwd=cwd) if named else None) or head


@dataclass(frozen=True, kw_only=True)
class FixContext:
    """Where one mend is worked on. `make` gives who answers for a model, where that is not for the settings to say."""

    log: "Decklog"
    repository: Repository
    mend: "Mend"
    cwd: Path
    state: Path
    make: "Callable[[ModelChoice], Provider] | None" = None
    say: Callable[[str], object] = field(default=lambda _: None)

    @property
    def feedback(self) -> "Feedback":
        return self.log.feedback.get(self.mend.feedback_id)

    @property
    def base(self) -> str:
        assert self.mend.base is not None, "every mend has a base from its beginning"
        return self.mend.base

    @property
    def folder(self) -> Path:
        """Where trials and calls of this mend run; what a killed one left there is nobody's."""
        return self.repository.state / "mends" / ref_part(self.mend.id)

    @property
    def refs(self) -> str:
        return f"{HOME}/mends/{ref_part(self.mend.id)}"

    @cached_property
    def rules(self) -> mend_settings.MendSettings:
        return mend_settings.read(self._settings)

    @cached_property
    def settings(self) -> "ReviewSettings":
        return review_settings.read(self._settings)

    @cached_property
    def _settings(self) -> bytes | None:
        require_consent(self.repository, self.base)
        return self.repository.read(self.base, NAME)

    @property
    def acts(self) -> SideEffects:
        return SideEffects(self.log, self.mend.run_id)

    @property
    def change(self) -> Change:
        """The fix: what leads from the base to the one commit of it."""
        return between(self.repository, f"{self.base}..{self.mend.head}", cwd=self.cwd)

    def runner(self) -> Runner:
        """Return what runs checks."""
        return Runner.beneath(self.folder / "trials", self.log, self.repository, self.settings.sandbox)

    def models(self) -> tuple[Models, Composer]:
        """Return the models to ask, and what composes a prompt for them."""
        settings = self.settings
        made = self.make or maker(self.log, settings.models, self.folder / "calls", read=self.read, sandbox=settings.sandbox)
        return Models(self.log, settings.models, made, run_id=self.mend.run_id), self.composer()

    def composer(self) -> Composer:
        """Return what composes prompts from the files of the base."""
        return Composer(self.settings.prompt, self.read)

    def read(self, path: str) -> bytes | None:
        """Read a file of the base."""
        return self.repository.read(self.base, path)

    def clear(self) -> None:
        """Remove what trials and calls left."""
        if self.folder.exists():
            remove_folder(self.folder)
