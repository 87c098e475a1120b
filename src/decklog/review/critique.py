"""Critique during the work: a model checks each change of a tool, if the repository enables it.

Findings with high confidence are shown at once, those with medium confidence are kept for the review, others are dropped.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from decklog.conductor.git.repository import Repository
from decklog.conductor.settings import NAME, load, require_consent
from decklog.conductor.tables import build
from decklog.core.display import DOLLAR
from decklog.core.errors import DecklogError, Invalid
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.models.asking import BuildProvider, ModelSetup, read_setup
from decklog.records.values import to_json

SITE = "critique"
KEPT = "critique.kept"
SHOWN = "critique.told"
KEPT_FROM, SHOWN_FROM = 60, 80
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "findings": {
            "type": "array",
            "maxItems": 5,
            "items": {
                "type": "object",
                "properties": {
                    "severity": {"type": "string", "enum": ["high", "med"]},
                    "citation": {"type": "string"},
                    "fix_direction": {"type": "string"},
                    "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
                },
                "required": ["severity", "citation", "fix_direction", "confidence"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["findings"],
    "additionalProperties": False,
}
_LONGEST = 20_000
_LONGEST_TEXT = 600
_PATTERNS = 3
_MOST_KEPT = 50


@dataclass(frozen=True, kw_only=True)
class CritiqueSettings:
    """The `[critique]` settings: its budget in one run, and the seconds that an agent waits for it."""

    enabled: bool = False
    most_usd: float = 0.50
    seconds: float = 15.0


def read_settings(content: bytes) -> CritiqueSettings:
    """Parse `[critique]` of a `decklog.toml`; raise Invalid for an unknown setting."""
    settings = build(CritiqueSettings, "[critique]", load(content).get("critique", {}))
    for name in ("most_usd", "seconds"):
        if getattr(settings, name) <= 0:
            raise Invalid(f"{name} in [critique] has to be a number above 0", field=name)
    return settings


@dataclass(frozen=True)
class Critic:
    """Critiques the tool calls of one run, within its budget."""

    log: Decklog
    models: ModelSetup
    settings: CritiqueSettings
    run_id: str
    task_id: str | None = None

    def critique_call(self, tool: str, arguments: object, outcome: object) -> list[str]:
        """Return the findings about a tool call that should be shown at once.

        Errors don't stop the work, since critique is not a gate.
        """
        if not self.settings.enabled or not self.models.has(SITE):
            return []
        spent = self.log.ledger.summary(self.run_id, call_site=SITE)["total"]["cost_microdollars"]
        if spent >= self.settings.most_usd * DOLLAR:
            return []
        call = f"{tool}\n{to_json(arguments)[:_LONGEST]}\n{to_json(outcome)[:_LONGEST]}"
        data = [("task", self._task()), ("known faults", self._known(arguments)), ("call", call)]
        answer = self.models.ask(self.log, SITE, FORM, data, run_id=self.run_id, task_id=self.task_id)
        findings: list[dict[str, Any]] = [] if answer.data is None else answer.data["findings"]
        return [line for one in findings if (line := self._record(tool, one)) is not None]

    def _record(self, tool: str, finding: dict[str, Any]) -> str | None:
        """Record a finding. Return it as a line if it should be shown at once."""
        confidence = finding["confidence"]
        if confidence < KEPT_FROM:
            return None
        line = f"{finding['citation'][:_LONGEST_TEXT]}: {finding['fix_direction'][:_LONGEST_TEXT]}"
        is_shown = confidence >= SHOWN_FROM
        self.log.journal.append(
            self.run_id,
            line,
            kind=EntryKind.EVENT,
            subtype=SHOWN if is_shown else KEPT,
            task_id=self.task_id,
            payload={"tool": tool, **finding},
        )
        return f"Critique ({finding['severity']}, {confidence} of 100 sure): {line}" if is_shown else None

    def _task(self) -> str:
        if self.task_id is None:
            return self.log.runs.get(self.run_id).goal
        task = self.log.tasks.get(self.task_id)
        return "\n".join(part for part in (task.title, task.objective, *task.acceptance) if part)

    def _known(self, arguments: object) -> str:
        words = to_json(arguments)[:_LONGEST_TEXT]
        found = self.log.memory.recall(words, topic="failure_patterns", limit=_PATTERNS)
        return "\n".join(f"- {lesson.body}" for lesson in found) or "none"


def find_kept_findings(log: Decklog, run_id: str, task_id: str | None) -> str:
    """Return the kept findings of critique for the work item of a task."""
    found = log.journal.find(run_id, subtype=KEPT, limit=_MOST_KEPT, oldest_first=True)
    # The ids of all tasks of one work item have the same prefix.
    item = "" if task_id is None else task_id.rpartition(".")[0]
    return "\n".join(f"- {entry.body}" for entry in found if not item or (entry.task_id or "").startswith(f"{item}."))


def find_critic(
    log: Decklog,
    folder: Path,
    state: Path,
    *,
    run_id: str,
    task_id: str | None = None,
    make: BuildProvider | None = None,
) -> Critic | None:
    """Build the critic that a repository's newest commit configures; None if it configures none."""
    try:
        repository = Repository.find(folder, state)
        commit = repository.resolve("HEAD")
        content = None if commit is None else repository.read(commit, NAME)
        settings = CritiqueSettings() if content is None else read_settings(content)
        if commit is None or not settings.enabled:
            return None
        require_consent(repository, commit)
    except DecklogError:
        return None  # the gate reports invalid settings
    models = read_setup(log, lambda path: repository.read(commit, path), repository.state / "calls", build=make)
    return Critic(log, _limit_time(models, settings.seconds), settings, run_id, task_id)


def _limit_time(setup: ModelSetup, seconds: float) -> ModelSetup:
    """Limit the time of every model: an agent waits for it."""
    models = {name: replace(one, seconds=min(one.seconds, seconds)) for name, one in setup.models.models.items()}
    return replace(setup, models=replace(setup.models, models=models))
