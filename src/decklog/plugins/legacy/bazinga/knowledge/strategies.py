"""Strategies: insights that helped, and those found in what agents reasoned out."""

import sys
from typing import TYPE_CHECKING

from decklog.plugins.legacy.bazinga.base import CallRefused, Desk, answers, check, filled, given, reports, stamp
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.rules import TOPICS, validate_scope_group_only
from decklog.stores.memory.strategies import MOST_CREDIT, Strategy, StrategyTopic

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues


class BazingaStrategies(Desk):
    """Saves insights, counts how often they helped, and extracts new ones."""

    @answers
    def save_strategy(
        self,
        project_id: str,
        topic: str,
        insight: str,
        lang: str | None = None,
        framework: str | None = None,
        strategy_id: str | None = None,
    ) -> "dict[str, Any]":
        """Save an insight; said again, it counts as more helpful. A topic that is not known becomes general."""
        filled("project_id", project_id)
        filled("insight", insight)
        saved = self.log.strategies.record(
            project_id,
            StrategyTopic(topic if topic in TOPICS else "general"),
            insight,
            lang=given(lang),
            framework=given(framework),
            strategy_id=given(strategy_id),
        )
        return {"success": True, "strategy_id": saved.id, "project_id": saved.project, "topic": str(saved.topic)}

    @answers
    def get_strategies(
        self,
        project_id: str,
        lang: str | None = None,
        framework: str | None = None,
        topic: str | None = None,
        limit: int = 5,
    ) -> "list[dict[str, Any]]":
        """List a project's strategies, the most helpful first; a topic that is not known has none."""
        if topic is not None and topic not in TOPICS:
            return []
        found = self.log.strategies.find(
            project_id,
            lang=given(lang),
            framework=given(framework),
            topic=None if topic is None else StrategyTopic(topic),
            limit=min(max(limit, 1), 100),
        )
        return [_row(strategy) for strategy in found]

    @reports
    def update_strategy_helpfulness(self, strategy_id: str, increment: int = 1) -> "dict[str, Any]":
        """Say that a strategy helped."""
        by = min(max(increment, 0), MOST_CREDIT)
        credited = self.log.strategies.credit(strategy_id, by=by)
        return {
            "success": True,
            "strategy_id": strategy_id,
            "previous_helpfulness": credited.helpfulness - by,
            "new_helpfulness": credited.helpfulness,
        }

    @answers
    def extract_strategies(
        self, session_id: str, group_id: str, project_id: str, lang: str | None = None, framework: str | None = None
    ) -> "dict[str, Any]":
        """Make strategies of the newest reasoning of a group; an entry counts once."""
        check(validate_scope_group_only(group_id))
        self.expect_session(session_id)
        found = self.log.strategies.extract(session_id, group_id, project_id, lang=given(lang), framework=given(framework))
        return {
            "success": True,
            "extracted_count": len(found),
            "session_id": session_id,
            "group_id": group_id,
            "project_id": project_id,
        }


def _row(strategy: Strategy) -> "dict[str, Any]":
    return {
        "strategy_id": strategy.id,
        "project_id": strategy.project,
        "topic": str(strategy.topic),
        "insight": strategy.insight,
        "helpfulness": strategy.helpfulness,
        "lang": strategy.lang,
        "framework": strategy.framework,
        "last_seen": stamp(strategy.last_seen_at),
        "created_at": stamp(strategy.created_at),
    }


# Commands

DESK = BazingaStrategies


def save_strategy(desk: BazingaStrategies, words: "UsageValues") -> ProgramReply:
    project, topic, insight = words["project"], words["topic"], words["insight"]
    if words.get("text") is not None:
        # SESSION GROUP TYPE TEXT [OUTCOME]
        from decklog.plugins.legacy.bazinga.knowledge.patterns import project_of

        outcome = given(words.get("outcome"))
        project, topic = project_of(desk, project), insight
        insight = words["text"] + (f" (outcome: {outcome})" if outcome else "")
    saved = desk.save_strategy(project, topic, insight, words.get("lang"), words.get("framework"), words.get("strategy-id"))
    return ProgramReply(saved, said=f"Strategy saved: {saved['strategy_id']}")


def get_strategies(desk: BazingaStrategies, words: "UsageValues") -> ProgramReply:
    limit, topic = words.whole("limit"), words.get("topic")
    if topic is not None and topic not in TOPICS:
        sys.stderr.write(f"Invalid topic: {topic!r}. Must be one of: {', '.join(TOPICS)}\n")
    found = desk.get_strategies(words["project"], words.get("lang"), words.get("framework"), topic, 5 if limit is None else limit)
    return ProgramReply(found)


def update_strategy_helpfulness(desk: BazingaStrategies, words: "UsageValues") -> ProgramReply:
    increment = words.whole("increment")
    updated = desk.update_strategy_helpfulness(words["id"], 1 if increment is None else increment)
    return ProgramReply(updated, said="Helpfulness updated")


def extract_strategies(desk: BazingaStrategies, words: "UsageValues") -> ProgramReply:
    group, project = words.get("group"), words.get("project")
    if group is not None and project is None:
        raise CallRefused("name the group and the project, or neither")
    if group is None or project is None:
        return ProgramReply(_extract_all(desk, words))
    found = desk.extract_strategies(words["session"], group, project, words.get("lang"), words.get("framework"))
    return ProgramReply(found, said=f"Extracted {found['extracted_count']} strategies")


def _extract_all(desk: BazingaStrategies, words: "UsageValues") -> "dict[str, Any]":
    """Extract from every group of a session, for the project that its metadata name."""
    from decklog.plugins.legacy.bazinga.knowledge.patterns import project_of
    from decklog.plugins.legacy.bazinga.work.groups import groups_of

    session = words["session"]
    desk.expect_session(session)
    project, count = project_of(desk, session), 0
    for group in groups_of(desk, session):
        made = desk.extract_strategies(session, group.group_id, project, words.get("lang"), words.get("framework"))
        count += made["extracted_count"]
    return {"success": True, "extracted_count": count, "session_id": session, "group_id": None, "project_id": project}
