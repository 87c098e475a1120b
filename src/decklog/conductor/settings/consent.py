"""The consent of a person to what a repository's settings loosen.

Consent is for one file, by its digest, in one repository: the next version of the file is asked about again.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decklog.conductor.settings.document import NAME, load
from decklog.conductor.settings.loosening import Loosened, loosened
from decklog.core.errors import NotAccepted
from decklog.core.user_consents import give_consent, has_consent

if TYPE_CHECKING:
    from decklog.conductor.git.repository import Repository


@dataclass(frozen=True)
class LooseningRequest:
    """What the settings of a commit loosen, and whether this user consented to it."""

    commit: str
    digest: str
    settings: Sequence[Loosened]
    is_given: bool


def wanted(repository: "Repository", commit: str) -> LooseningRequest:
    """Return what the settings of a commit loosen."""
    content = repository.read(commit, NAME) or b""
    digest = hashlib.sha256(content).hexdigest()
    settings = loosened(load(content))
    return LooseningRequest(commit, digest, settings, bool(settings) and has_consent(str(repository.common), digest))


def require(repository: "Repository", commit: str) -> None:
    """Raise NotAccepted if the settings of a commit loosen something that this user did not consent to.

    Call it before anything that the settings name is run.
    """
    asked = wanted(repository, commit)
    if asked.settings and not asked.is_given:
        raise NotAccepted(
            f"{NAME} of commit {commit[:12]} loosens what protects you: {'; '.join(one.line() for one in asked.settings)}",
            hint=f"If you trust it, a person can consent on a terminal: decklog accept --settings --commit {commit[:12]}",
            commit=commit,
            digest=asked.digest,
            settings=[one.key for one in asked.settings],
        )


def give(repository: "Repository", asked: LooseningRequest) -> None:
    """Record the consent of this user."""
    give_consent(str(repository.common), asked.digest)
