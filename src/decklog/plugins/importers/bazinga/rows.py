"""Build rows of bazinga's tables from records, for exports and for the replies of its commands.

Both format JSON differently: `spell` is the formatter.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from decklog.core.clock import to_text
from decklog.importing.exports import columns_of
from decklog.stores.memory.patterns import ErrorPattern
from decklog.stores.memory.strategies import Strategy
from decklog.stores.runs.run import Run
from decklog.stores.tasks.criteria import Criterion
from decklog.stores.tasks.groups import Group

Spell = Callable[[Any], str | None]

_SESSION = "session_id=id start_time=started_at end_time=ended_at mode original_requirements=goal status initial_branch=branch"
_GROUP = (
    "id=group_id session_id=run_id name status assigned_to revision_count last_review_status feature_branch merge_status"
    " complexity initial_tier context_references specializations item_count security_sensitive qa_attempts tl_review_attempts"
    " component_path review_iteration no_progress_count blocking_issues_count speckit_task_ids created_at updated_at"
)
_CRITERION = "session_id=run_id criterion status actual evidence required_for_completion=required created_at updated_at"
_STRATEGY = "strategy_id=id project_id=project topic insight helpfulness lang framework last_seen=last_seen_at created_at"
_PATTERN = "pattern_hash project_id=project solution confidence occurrences lang ttl_days last_seen=last_seen_at created_at"


def stamp(moment: datetime | None) -> str | None:
    """Format a time as bazinga does, in UTC and sortable; add microseconds to a time that needs them."""
    return None if moment is None else to_text(moment)[:26].replace("T", " ").removesuffix(".000000")


def session_row(run: Run, spell: Spell) -> dict[str, Any]:
    """Build a session row from a run."""
    row = columns_of(run, f"{_SESSION} metadata created_at=started_at", stamp)
    return row | {"original_requirements": run.goal or None, "metadata": spell(run.metadata or None)}


def group_row(group: Group, spell: Spell) -> dict[str, Any]:
    """Build a group row; referenced packages are numbers there."""
    row = columns_of(group, _GROUP, stamp) | {"security_sensitive": int(group.security_sensitive)}
    row |= {name: spell(getattr(group, name)) for name in ("specializations", "speckit_task_ids")}
    names = group.context_references
    return row | {"context_references": spell(None if names is None else [_number(name) for name in names])}


def criterion_row(criterion: Criterion) -> dict[str, Any]:
    """Build a row from a success criterion."""
    return columns_of(criterion, _CRITERION, stamp) | {"required_for_completion": int(criterion.required)}


def pattern_row(pattern: ErrorPattern, spell: Spell) -> dict[str, Any]:
    """Build a row from an error pattern."""
    return columns_of(pattern, _PATTERN, stamp) | {"signature_json": spell(pattern.signature)}


def strategy_row(strategy: Strategy) -> dict[str, Any]:
    """Build a row from a strategy."""
    return columns_of(strategy, _STRATEGY, stamp)


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text
