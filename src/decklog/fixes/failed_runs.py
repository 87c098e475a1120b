"""Failed runs: their cause, a pause with a snapshot of every task, and the decision about them.

Failures of the agent's own code are filed as feedback, and the run goes on when the fix is verified. A fix is never paused to
fix itself.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from decklog.conductor.settings import NAME, require_consent
from decklog.conductor.stages import all_tasks
from decklog.core.clock import to_text
from decklog.core.errors import Conflict, Invalid
from decklog.fixes.context import newest_base
from decklog.fixes.loop import FixLoop
from decklog.log import Decklog
from decklog.review import settings as review_settings
from decklog.stores.memory.text import signature
from decklog.stores.tasks.task import Task

SITE = "mend.failure"
FLOOR = 50
KINDS = ("task", "own-code", "outside")
# The cause without evidence, and without a model to ask.
UNKNOWN = "unknown"
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "kind": {"type": "string", "enum": list(KINDS)},
        "evidence": {"type": "string"},
        "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
    },
    "required": ["kind", "evidence", "confidence"],
    "additionalProperties": False,
}
_ENDED_WELL = ("done", "abandoned")
_MOST_TEXTS = 20
_LONGEST = 2000
_OUTAGE = re.compile(
    r"(?i)\b(?:quota|rate.?limit|overload(?:ed)?|too many requests|429|503|log.?in (?:expired|required)|unauthori[sz]ed|401"
    r"|no space left|disk is full|connection (?:refused|reset)|timed? ?out|network is unreachable|name resolution)\b"
)
_OF_THE_TASK = re.compile(
    r"(?i)\b(?:tests? (?:fail|red)|red in round|no-change|out-of-bounds|conflict|uncommitted|assert(?:ion)?|vacuous|census)"
)
_TRACED = re.compile(r'File "([^"]+)", line \d+')


@dataclass(frozen=True, kw_only=True)
class FailedRun:
    """The cause of a failed run, with confidence, evidence and the next command. For `unknown` nothing was changed."""

    run_id: str
    whose: str
    confidence: int
    evidence: str
    next: str
    snapshots: tuple[str, ...] = ()
    mend_id: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "snapshots": list(self.snapshots)}


def take_up(mending: FixLoop, run_id: str, whose: str | None = None) -> FailedRun:
    """Classify a failed run, pause it with a snapshot, and start a fix if this repository's code is to blame.

    `whose` is a person's classification, which takes precedence. If the cause stays unknown, nothing is changed.
    """
    if whose is not None and whose not in KINDS:
        raise Invalid(f"{whose!r} is not a kind of cause", hint=f"Use one of {', '.join(KINDS)}.", whose=whose)
    log = mending.log
    run = log.runs.get(run_id)
    failing = [task for task in all_tasks(log, run_id) if task.state.value in ("blocked", "failed")]
    _refuse_own(log, run_id)
    texts = list(_describe_failure(log, run_id, failing, run.summary or ""))
    if run.status.value not in ("failed", "paused") and not failing:
        raise Conflict(f"run {run_id} is {run.status} and has no failed task", hint=f"See: decklog runs show {run_id}", id=run_id)
    whose, confidence, evidence = (whose, 100, "a person decides so") if whose else _classified(mending, run_id, texts)
    if whose == UNKNOWN:
        return FailedRun(run_id=run_id, whose=whose, confidence=0, evidence=evidence, next=_next(run_id, whose, None))
    with log.transaction():
        kept = tuple(_pause(log, run_id, f"{whose}: {evidence}"))
        mend_id = _begin(mending, run_id, evidence, texts) if whose == "own-code" else None
    return FailedRun(
        run_id=run_id,
        whose=whose,
        confidence=confidence,
        evidence=evidence,
        next=_next(run_id, whose, mend_id),
        snapshots=kept,
        mend_id=mend_id,
    )


def _refuse_own(log: Decklog, run_id: str) -> None:
    for mend in log.mends.find(open_only=True, limit=200):
        if run_id in (mend.run_id, mend.fix_run_id):
            raise Conflict(f"run {run_id} belongs to mend {mend.id}", hint=f"Continue it: decklog mend {mend.id}", id=mend.id)


def _describe_failure(log: Decklog, run_id: str, failing: list[Task], summary: str) -> Iterator[str]:
    """Yield the recorded texts about a failure, the tasks first."""
    if summary:
        yield summary[:_LONGEST]
    for task in failing[:_MOST_TEXTS]:
        yield f"{task.title}: {' '.join(part for part in (task.blocker, task.reason) if part)}"[:_LONGEST]
    for entry in log.journal.find(run_id, subtype="agent.error", limit=_MOST_TEXTS):
        yield (entry.body or "")[:_LONGEST]


# The cause


def _classified(mending: FixLoop, run_id: str, texts: list[str]) -> tuple[str, int, str]:
    """Return the cause of a failure: by keywords first, then by a model."""
    text = "\n".join(texts)
    if (found := _OUTAGE.search(text)) is not None:
        return "outside", 90, f"the output has {found[0]!r}"
    if (path := _own_file(mending, text)) is not None:
        return "own-code", 70, f"an error was raised in {path}, which is part of this repository"
    if (found := _OF_THE_TASK.search(text)) is not None:
        return "task", 80, f"the output has {found[0]!r}"
    return _by_model(mending, run_id, text)


def _own_file(mending: FixLoop, text: str) -> str | None:
    """Find the file of this repository at the end of a traceback."""
    base = newest_base(mending.repository)
    for path in reversed(_TRACED.findall(text)):
        name = path.rpartition(f"{mending.repository.folder}/")[2].lstrip("/")
        if mending.repository.read(base, name) is not None:
            return str(name)
    return None


def _by_model(mending: FixLoop, run_id: str, text: str) -> tuple[str, int, str]:
    repository = mending.repository
    base = newest_base(repository)
    settings = review_settings.read(repository.read(base, NAME))
    require_consent(repository, base)
    models = settings.setup(mending.log, repository, base, repository.state / "calls", build=mending.make)
    answer = models.ask(mending.log, SITE, FORM, [("failure", text)], run_id=run_id)
    if answer.data is None:
        return UNKNOWN, 0, f"no clear signal, and {answer.why}"
    confidence = int(answer.data["confidence"])
    whose = str(answer.data["kind"]) if confidence >= FLOOR else "outside"
    return whose, confidence, str(answer.data["evidence"])[:_LONGEST]


# The decision


def _pause(log: Decklog, run_id: str, reason: str) -> Iterator[str]:
    """Save a snapshot of every open task, and pause the run."""
    now = to_text(log.clock.now())
    for task in all_tasks(log, run_id):
        if task.state.value in _ENDED_WELL:
            continue
        kept: dict[str, object] = {
            "task_id": task.id,
            "paused_at": now,
            "reason": reason[:_LONGEST],
            "resume_hint": f"decklog runs update {run_id} --status active",
            "original_prompt": task.objective,
            "state_at_pause": task.state.value,
            "stage_at_pause": task.role,
            "inputs": task.inputs,
        }
        log.states.save_snapshot(run_id, task.id.replace("/", "_"), kept)
        yield task.id
    if log.runs.get(run_id).status.value != "paused":
        log.runs.update(run_id, status="paused")


def _begin(mending: FixLoop, run_id: str, evidence: str, texts: list[str]) -> str:
    body = f"Run {run_id} failed by what the agent is made of: {evidence}\n" + "\n".join(texts)
    key = f"run:{run_id}:{signature(evidence)}"
    filed = mending.log.feedback.file("mend", body[: 4 * _LONGEST], channel="run", severity="high", key=key)
    return mending.begin(filed.id, for_run_id=run_id).id


def _next(run_id: str, whose: str, mend_id: str | None) -> str:
    resume = f"decklog runs update {run_id} --status active"
    if whose == UNKNOWN:
        return f"Nothing was changed. Say it yourself: decklog mend --run {run_id} --whose {'|'.join(KINDS)}"
    if mend_id is not None:
        return f"The run is paused and goes on when this is verified: decklog mend {mend_id}"
    if whose == "task":
        return f"The run is paused. Change the task or the plan, then: {resume}"
    return f"The run is paused until that is over. Then: {resume}"
