"""Runs in repositories that a benchmark has made itself, with consent to their settings."""

import hashlib
from pathlib import Path

from decklog import Decklog
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.conductor.plan import parse
from decklog.conductor.starting import RunRequest, begin
from decklog.core.user_consents import give_consent


def consent(repository: Path) -> None:
    """Consent to the `decklog.toml` that a repository has now."""
    digest = hashlib.sha256((repository / "decklog.toml").read_bytes()).hexdigest()
    give_consent(str(repository / ".git"), digest)


def start_plan(log: Decklog, content: bytes, repository: Path, state: Path) -> RunContext:
    """Start the run of a plan, or go on with it."""
    plan = parse(content, is_json=True)
    return begin(log, RunRequest(plan.goal, content, plan), Repository.find(repository, state), say=lambda _: None)
