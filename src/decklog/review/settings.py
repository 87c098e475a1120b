"""The settings of the gate, read from `decklog.toml` in the base commit of a change, never from the change itself."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from decklog.conductor.git.repository import Repository
from decklog.conductor.settings import PROTECTED, TESTS, Check, Configuration, define_check, load, sandbox_kind
from decklog.conductor.tables import build
from decklog.core.errors import Invalid
from decklog.guard.sandbox.sandbox import SandboxKind
from decklog.log import Decklog
from decklog.models.asking import ModelSetup, build_setup
from decklog.models.composer import PromptSettings
from decklog.models.composer import read_settings as read_prompt
from decklog.models.settings import ModelSettings
from decklog.models.settings import read as read_models

MODEL_PASSES = (3, 5, 6, 7)
TITLES = ("plain", "conventional")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """`[review]`: which stages ask a model, which checks and linters run, and the form of a message.

    `base` is the branch that changes are published against. `samples` are paths of made-up secrets, which are not searched.
    `measure_seconds` limits how long stage 2 measures what tests run and notice of a change; 0 leaves it out. `needs_tests`
    requests changes where code changes and no test does. `tools` names the linters to run, which then have to be installed;
    without it all run that are installed and configured.
    """

    base: str = ""
    model_passes: tuple[int, ...] = (3, 6)
    static: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    block_below: int = 60
    change_below: int = 75
    titles: str = "plain"
    title_length: int = 120
    body_needs: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    docs: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()
    measure_seconds: int = 60
    needs_tests: bool = False


@dataclass(frozen=True, kw_only=True)
class ReviewSettings:
    """All settings of a review. `is_asked_for` is whether the repository has a gate."""

    digest: str
    rules: Rules = field(default_factory=Rules)
    is_asked_for: bool = False
    checks: tuple[Check, ...] = ()
    tests: tuple[str, ...] = TESTS
    protected: tuple[str, ...] = PROTECTED
    sandbox: SandboxKind = SandboxKind.AUTO
    models: ModelSettings = field(default_factory=ModelSettings)
    prompt: PromptSettings = field(default_factory=PromptSettings)

    @property
    def static_checks(self) -> tuple[Check, ...]:
        """The gate checks of stage 1: those that `static` names, or those that report no tests."""
        named = self.rules.static
        return tuple(one for one in self._gates if (one.report == "none" if named is None else one.name in named))

    @property
    def functional_checks(self) -> tuple[Check, ...]:
        """The gate checks of stage 2: all others."""
        static = {one.name for one in self.static_checks}
        return tuple(one for one in self._gates if one.name not in static)

    @property
    def _gates(self) -> tuple[Check, ...]:
        return tuple(one for one in self.checks if one.gate)

    def setup(self, log: Decklog, repository: Repository, commit: str, folder: Path, **given: Any) -> ModelSetup:
        """Build the models and prompts of a commit; agent programs run in `folder`."""
        read = partial(repository.read, commit)
        return build_setup(log, self.models, self.prompt, read, folder, sandbox=self.sandbox, **given)

    def configuration(self, checks: tuple[Check, ...]) -> Configuration:
        """Return the configuration for an examination by some checks."""
        return Configuration(digest=self.digest, checks=checks, tests=self.tests, protected=self.protected, sandbox=self.sandbox)


def read(content: bytes | None) -> ReviewSettings:
    """Parse the settings of a commit; without a file there are no checks, so every change is unproven."""
    digest = hashlib.sha256(content or b"").hexdigest()
    if content is None:
        return ReviewSettings(digest=digest)
    table = load(content)
    return ReviewSettings(
        digest=digest,
        rules=_rules(table.get("review", {})),
        is_asked_for="review" in table,
        checks=tuple(define_check(one) for one in table.get("checks", ())),
        tests=tuple(table.get("tests", {}).get("paths", TESTS)),
        protected=(*PROTECTED, *table.get("protect", {}).get("paths", ())),
        sandbox=sandbox_kind(table.get("run", {}).get("sandbox", "auto")),
        models=read_models(content),
        prompt=read_prompt(content),
    )


def _rules(table: Mapping[str, Any]) -> Rules:
    rules = build(Rules, "[review]", table)
    if any(number not in MODEL_PASSES for number in rules.model_passes):
        raise Invalid("model_passes has to be a list of 3, 5, 6 and 7", hint="model_passes = [3, 6]", field="model_passes")
    if rules.titles not in TITLES:
        raise Invalid(f"titles has to be one of {', '.join(TITLES)} (got {rules.titles!r})", field="titles")
    for name in ("block_below", "change_below", "title_length", "measure_seconds"):
        if getattr(rules, name) < 0:
            raise Invalid(f"{name} has to be a whole number (got {getattr(rules, name)!r})", field=name)
    return rules
