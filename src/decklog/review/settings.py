"""How changes are reviewed, read from `decklog.toml` in the commit that a change starts from, and never from the change."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from decklog.conductor.settings.check import Check, define
from decklog.conductor.settings.configuration import PROTECTED, TESTS, Configuration, sandbox_kind
from decklog.conductor.settings.document import load
from decklog.core.errors import Invalid
from decklog.guard.sandbox.sandbox import Kind
from decklog.models.composer import PromptSettings
from decklog.models.composer import read_settings as read_prompt
from decklog.models.settings import ModelSettings
from decklog.models.settings import read as read_models

MODEL_PASSES = (3, 5, 6, 7)
TITLES = ("plain", "conventional")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """`[review]`: which passes ask a model, which checks are static, and what a message must be.

    `base` is the branch that changes are published against. `samples` are paths of texts that are made to look like secrets, as
    those are which a redactor is tried on: no secret is looked for there. `measure_seconds` is how long pass 2 may measure which
    changed lines tests run and what they notice; 0 leaves it out. `needs_tests` asks for changes where behaviour changes and no
    test does, which is otherwise only told.
    """

    base: str = ""
    model_passes: tuple[int, ...] = (3, 6)
    static: tuple[str, ...] | None = None
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
    """Everything that a review goes by. `is_asked_for` says whether the repository has a gate at all."""

    digest: str
    rules: Rules = field(default_factory=Rules)
    is_asked_for: bool = False
    checks: tuple[Check, ...] = ()
    tests: tuple[str, ...] = TESTS
    protected: tuple[str, ...] = PROTECTED
    sandbox: Kind = Kind.AUTO
    models: ModelSettings = field(default_factory=ModelSettings)
    prompt: PromptSettings = field(default_factory=PromptSettings)

    @property
    def static_checks(self) -> tuple[Check, ...]:
        """The gate checks of pass 1: those that are named, or those that report no tests."""
        named = self.rules.static
        return tuple(one for one in self._gates if (one.report == "none" if named is None else one.name in named))

    @property
    def functional_checks(self) -> tuple[Check, ...]:
        """The gate checks of pass 2: all others."""
        static = {one.name for one in self.static_checks}
        return tuple(one for one in self._gates if one.name not in static)

    @property
    def _gates(self) -> tuple[Check, ...]:
        return tuple(one for one in self.checks if one.gate)

    def configuration(self, checks: tuple[Check, ...]) -> Configuration:
        """Give what the examination of a change by checks needs."""
        return Configuration(digest=self.digest, checks=checks, tests=self.tests, protected=self.protected, sandbox=self.sandbox)


def read(content: bytes | None) -> ReviewSettings:
    """Read the settings of a commit; one without any has no checks, which is then said of every change."""
    digest = hashlib.sha256(content or b"").hexdigest()
    if content is None:
        return ReviewSettings(digest=digest)
    table = load(content)
    return ReviewSettings(
        digest=digest,
        rules=_rules(table.get("review", {})),
        is_asked_for="review" in table,
        checks=tuple(define(one) for one in table.get("checks", ())),
        tests=tuple(table.get("tests", {}).get("paths", TESTS)),
        protected=(*PROTECTED, *table.get("protect", {}).get("paths", ())),
        sandbox=sandbox_kind(table.get("run", {}).get("sandbox", "auto")),
        models=read_models(content),
        prompt=read_prompt(content),
    )


def _rules(table: Mapping[str, Any]) -> Rules:
    known = [one.name for one in fields(Rules)]
    for key in table:
        if key not in known:
            raise Invalid(f"[review] has no {key!r}", hint=f"There are {', '.join(known)}.", field=key)
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    rules = Rules(**given)
    if any(number not in MODEL_PASSES for number in rules.model_passes):
        raise Invalid("model_passes are some of 3, 5, 6 and 7", hint="model_passes = [3, 6]", field="model_passes")
    if rules.titles not in TITLES:
        raise Invalid(f"titles is {rules.titles!r}", hint=f"Use one of {', '.join(TITLES)}.", field="titles")
    if type(rules.needs_tests) is not bool:
        raise Invalid(f"needs_tests is {rules.needs_tests!r}; it is true or false", field="needs_tests")
    for name in ("block_below", "change_below", "title_length", "measure_seconds"):
        if type(getattr(rules, name)) is not int or getattr(rules, name) < 0:
            raise Invalid(f"{name} is {getattr(rules, name)!r}; it is a whole number", field=name)
    return rules
