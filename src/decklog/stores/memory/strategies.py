"""Strategies: insights that helped, by project."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Literal

from decklog.db.where import Where, page_size, parse_enum
from decklog.journal.entry import Entry, EntryKind, ReasoningPhase
from decklog.records.operations import reads, writes
from decklog.records.record import Record
from decklog.stores.base import Store
from decklog.stores.checks import check_filled, check_integer

LONGEST_INSIGHT = 500
MOST_CREDIT = 100
_EXTRACTED = 5


class StrategyTopic(StrEnum):
    IMPLEMENTATION = "implementation"
    ARCHITECTURE = "architecture"
    METHODOLOGY = "methodology"
    GENERAL = "general"


StrategyTopicLike = StrategyTopic | Literal["implementation", "architecture", "methodology", "general"]


TOPIC_OF_PHASE = {
    ReasoningPhase.COMPLETION: StrategyTopic.IMPLEMENTATION,
    ReasoningPhase.DECISIONS: StrategyTopic.ARCHITECTURE,
    ReasoningPhase.APPROACH: StrategyTopic.METHODOLOGY,
}


@dataclass(frozen=True, kw_only=True)
class Strategy(Record):
    """A way of working that helped before."""

    table = "strategies"
    home = "@memory"

    id: str
    project: str
    topic: StrategyTopic
    insight: str
    helpfulness: int = 1
    lang: str | None = None
    framework: str | None = None
    refs: list[str] = field(default_factory=list)
    created_at: datetime
    last_seen_at: datetime


class Strategies(Store):
    """Collects insights, and which of them helped most."""

    records = (Strategy,)

    @writes
    def record(
        self,
        project: str,
        topic: StrategyTopicLike,
        insight: str,
        *,
        lang: str | None = None,
        framework: str | None = None,
        strategy_id: str | None = None,
    ) -> Strategy:
        """Record an insight; said again in the same words, it counts as more helpful. At most 500 characters are kept."""
        topic = parse_enum(StrategyTopic, topic, "topic")
        return self._write(project, topic, insight, lang, framework, strategy_id)

    def _write(
        self,
        project: str,
        topic: StrategyTopic,
        insight: str,
        lang: str | None,
        framework: str | None,
        strategy_id: str | None = None,
        refs: list[str] | None = None,
    ) -> Strategy:
        check_filled("project", project)
        check_filled("insight", insight)
        # Hash the redacted text, so that no id depends on a secret.
        clean, _ = self._db.values.bind_text("insight", insight)
        now = self._now()
        return self._upsert(
            Strategy,
            {
                "id": strategy_id or strategy_id_of(project, topic, clean),
                "project": project,
                "topic": topic,
                "insight": clean[:LONGEST_INSIGHT],
                "helpfulness": 1,
                "lang": lang,
                "framework": framework,
                "refs": refs or [],
                "created_at": now,
                "last_seen_at": now,
            },
            keep=("project", "topic", "insight", "lang", "framework", "created_at"),
            update={
                "helpfulness": "strategies.helpfulness + 1",
                "refs": "case when excluded.refs = '[]' then strategies.refs else excluded.refs end",
            },
            note=insight,
        )

    @reads
    def get(self, strategy_id: str) -> Strategy:
        """Get a strategy."""
        return self._fetch(Strategy, strategy_id)

    @reads
    def find(
        self,
        project: str,
        *,
        lang: str | None = None,
        framework: str | None = None,
        topic: StrategyTopicLike | None = None,
        limit: int = 5,
    ) -> list[Strategy]:
        """List a project's strategies, the most helpful first; those of no language or framework suit every one."""
        where = Where(Strategy, project=project, topic=topic)
        if lang is not None:
            where.add("(lang = :lang or lang is null)", lang=lang)
        if framework is not None:
            where.add("(framework = :framework or framework is null)", framework=framework)
        return self._list(Strategy, where, order="helpfulness desc, last_seen_at desc, id", limit=page_size(limit))

    @writes
    def credit(self, strategy_id: str, *, by: int = 1) -> Strategy:
        """Record that a strategy helped, once or several times."""
        check_integer("by", by, high=MOST_CREDIT)
        return self._update(Strategy, strategy_id, {"last_seen_at": self._now()}, adding={"helpfulness": by}, note=f"helped {by}")

    @writes
    def extract(
        self, run_id: str, group_id: str, project: str, *, lang: str | None = None, framework: str | None = None
    ) -> list[Strategy]:
        """Create strategies from the five newest completions, decisions and approaches of a group's agents.

        An entry counts once, however often it is extracted.
        """
        check_filled("group_id", group_id)
        self._db.lock_stream("@memory")
        self._db.rows("select id from lesson_desk where id = 1 for update", {})
        return [self._extracted(entry, project, lang, framework) for entry in self._reasoning(run_id, group_id)]

    def _reasoning(self, run_id: str, group_id: str) -> list[Entry]:
        found: list[Entry] = []
        for phase in TOPIC_OF_PHASE:
            found += self._journal.find(run_id, kind=EntryKind.REASONING, group_id=group_id, phase=phase, limit=_EXTRACTED)
        newest = sorted(found, key=lambda entry: entry.seq, reverse=True)
        return [entry for entry in newest if (entry.body or "").strip()][:_EXTRACTED]

    def _extracted(self, entry: Entry, project: str, lang: str | None, framework: str | None) -> Strategy:
        assert entry.phase is not None
        assert entry.body is not None
        topic = TOPIC_OF_PHASE[entry.phase]
        known = self._seek(Strategy, strategy_id_of(project, topic, entry.body))
        refs = known.refs if known else []
        if known is not None and entry.id in refs:
            return known.mark_already()
        return self._write(project, topic, entry.body, lang, framework, refs=[*refs, entry.id])

    @writes
    def adopt(
        self,
        strategy_id: str,
        project: str,
        topic: StrategyTopicLike,
        insight: str,
        *,
        created_at: datetime,
        last_seen_at: datetime,
        helpfulness: int = 0,
        lang: str | None = None,
        framework: str | None = None,
    ) -> Strategy:
        """Take over a strategy from another system as it is; a known one comes back as it is."""
        given: dict[str, Any] = {
            "id": strategy_id,
            "project": project,
            "topic": parse_enum(StrategyTopic, topic, "topic"),
            "insight": insight,
            "helpfulness": helpfulness,
            "lang": lang,
            "framework": framework,
            "created_at": created_at,
            "last_seen_at": last_seen_at,
        }
        return self._find_or_add(lambda: self._seek(Strategy, strategy_id), lambda: self._add(Strategy, note="imported", **given))


def strategy_id_of(project: str, topic: str, insight: str) -> str:
    """Return the id of a strategy from its project, topic and insight."""
    return f"{project}_{topic}_{sha256(insight.encode()).hexdigest()[:16]}"
