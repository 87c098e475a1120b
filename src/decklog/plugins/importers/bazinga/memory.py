"""What bazinga learned: error patterns and strategies, project by project."""

from typing import TYPE_CHECKING

from decklog.core.errors import Invalid
from decklog.importing.report import Fate
from decklog.importing.row import EPOCH, Row
from decklog.plugins.importers.bazinga.base import BazingaTables
from decklog.stores.memory.patterns import ErrorPattern
from decklog.stores.memory.strategies import Strategy, StrategyTopic

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any

_TOPICS = ("implementation", "architecture", "methodology", "general")


class MemoryTables(BazingaTables):
    """Patterns and strategies belong to projects, not to runs."""

    def pattern(self, row: Row) -> Fate:
        """Take an error pattern over with its counts."""
        created: datetime = row.time("created_at", EPOCH)
        confidence = row.take("confidence", 0.5)
        if not isinstance(confidence, (int, float)) or not 0 <= confidence <= 1:
            raise Invalid(f"a confidence goes from 0 to 1; it is {confidence!r}")
        fields: dict[str, Any] = {
            "pattern_hash": row.text("pattern_hash"),
            "project": row.text("project_id", ""),
            "signature": row.json("signature_json", (dict,), {}),
            "solution": row.text("solution", ""),
            "created_at": created,
            "last_seen_at": row.time("last_seen", created),
            "confidence": float(confidence),
            "occurrences": row.whole("occurrences", 1, low=1),
            "lang": row.text("lang"),
            "ttl_days": row.whole("ttl_days", 90, low=1, high=100_000),
        }
        adopted = self.log.patterns.adopt(**fields)
        return self.landing.record(ErrorPattern, clock="last_seen_at", **fields) if adopted.already else Fate.NEW

    def strategy(self, row: Row) -> Fate:
        """Take a strategy over with its id; a topic of its own becomes `general`."""
        created: datetime = row.time("created_at", EPOCH)
        topic = row.take("topic")
        if topic not in _TOPICS:
            topic = row.replace("topic", "general")
        strategy_id = row.text("strategy_id")
        fields: dict[str, Any] = {
            "project": row.text("project_id", ""),
            "topic": StrategyTopic(topic),
            "insight": row.text("insight", ""),
            "created_at": created,
            "last_seen_at": row.time("last_seen", created),
            "helpfulness": row.whole("helpfulness", 0),
            "lang": row.text("lang"),
            "framework": row.text("framework"),
        }
        adopted = self.log.strategies.adopt(strategy_id, **fields)
        return self.landing.record(Strategy, clock="last_seen_at", id=strategy_id, **fields) if adopted.already else Fate.NEW
