"""Consent to the settings of repositories that a benchmark has made itself."""

import hashlib
from pathlib import Path

from decklog.core.user_consents import give_consent


def consent(repository: Path) -> None:
    """Consent to the `decklog.toml` that a repository has now."""
    digest = hashlib.sha256((repository / "decklog.toml").read_bytes()).hexdigest()
    give_consent(str(repository / ".git"), digest)
