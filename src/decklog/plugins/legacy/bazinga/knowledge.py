"""Context packages, their consumption, error patterns and strategies."""

import os
from datetime import timedelta
from typing import Any

from decklog import redaction
from decklog.core.errors import NotFound
from decklog.importing.exports import columns_of
from decklog.journal.entry import EntryKind
from decklog.plugins.importers.bazinga.rows import stamp, strategy_row
from decklog.plugins.legacy.bazinga.base import (
    MOST_ROWS,
    BazingaBase,
    CallRefused,
    answers,
    check,
    check_group,
    filled,
    given,
    items_of,
    one_of,
    reports,
    validate_scope_global_or_group,
    validate_scope_group_only,
    validate_task_group_id,
)
from decklog.stores.intake import Intake
from decklog.stores.memory.patterns import ErrorPattern, PatternOutcome
from decklog.stores.memory.strategies import MOST_CREDIT, StrategyTopic
from decklog.stores.workflow.context import ConsumingAgent, ContextAgent, PackagePriority, PackageType


class BazingaKnowledge(BazingaBase):
    """Context packages and their use, error patterns and strategies."""

    # Packages

    @answers
    def save_context_package(
        self,
        session_id: str,
        group_id: str,
        package_type: str,
        file_path: str,
        producer_agent: str,
        consumers: list[Any],
        priority: str,
        summary: str,
        size_bytes: int | None = None,
        supersedes_id: int | None = None,
    ) -> dict[str, Any]:
        """Share a file of bazinga/artifacts/SESSION/ with other agents; a superseded package is no longer offered."""
        check(validate_scope_global_or_group(group_id))
        one_of("package_type", package_type, PackageType)
        one_of("priority", priority, PackagePriority)
        filled("summary", summary)
        named = sorted({_agent("consumer", name) for name in items_of("consumers", consumers, "agents")})
        producer = _agent("producer_agent", producer_agent)
        path, real = self._artifact(session_id, file_path)
        self.expect_session(session_id)
        if size_bytes is None and os.path.isfile(real):
            size_bytes = os.path.getsize(real)
        package = self.log.context.save(
            session_id,
            PackageType(package_type),
            path,
            ContextAgent(producer),
            summary,
            consumers=named,
            group_id=group_id,
            priority=PackagePriority(priority),
            size_bytes=size_bytes,
            supersedes=None if supersedes_id is None else str(supersedes_id),
        )
        return {"package_id": package.number, "file_path": package.file_path, "consumers_created": len(named)}

    def _artifact(self, session_id: str, file_path: str) -> tuple[str, str]:
        """Resolve a file below the session's artifacts, following links; return the path to store, and the real path."""
        filled("file_path", file_path)
        folder = os.path.join(self.project_root, "bazinga", "artifacts", session_id)
        inside = os.path.realpath(folder)
        # A relative path is relative to the caller's folder, else to the project.
        for base in (os.getcwd(), self.project_root):
            real = os.path.realpath(os.path.join(base, file_path))
            if real.startswith(inside + os.sep):
                rest = os.path.relpath(real, inside).replace(os.sep, "/")
                return f"bazinga/artifacts/{session_id}/{rest}", real
        raise CallRefused(f"file_path must lie inside bazinga/artifacts/{session_id}/, got {file_path!r}")

    @answers
    def get_context_packages(
        self, session_id: str, group_id: str, agent_type: str, limit: int = 3, include_consumed: bool = False
    ) -> list[dict[str, Any]]:
        """List the packages for an agent, of its group and of the whole session, the most urgent first."""
        check(validate_scope_global_or_group(group_id))
        if type(limit) is not int or not 1 <= limit <= 50:
            raise CallRefused(f"limit must be from 1 to 50, got {limit!r}")
        agent = agent_type.strip().lower()
        if agent not in tuple(ContextAgent):
            return []
        offered = self.log.context.offer(
            session_id, ContextAgent(agent), group_id=group_id, limit=limit, include_consumed=include_consumed
        )
        names = "id=number package_type priority summary file_path size_bytes group_id"
        return [columns_of(package, names) for package in offered]

    @answers
    def mark_context_consumed(self, package_id: int, agent_type: str, iteration: int = 1) -> bool:
        """Mark a package as read by one of its recipients; repeating it changes nothing."""
        self.log.context.consume(str(package_id), ContextAgent(_agent("agent_type", agent_type)), iteration=iteration)
        return True

    @answers
    def update_context_references(self, group_id: str, session_id: str, package_ids: list[int]) -> None:
        """Set the packages that a group refers to."""
        check(validate_task_group_id(group_id))
        if not isinstance(package_ids, list) or not all(type(number) is int for number in package_ids):
            raise CallRefused("package_ids must be a list of integers")
        self.log.groups.update(session_id, group_id, context_references=[str(number) for number in package_ids])

    # Consumption

    @answers
    def save_consumption(
        self, session_id: str, group_id: str, agent_type: str, iteration: int, package_id: int
    ) -> dict[str, Any]:
        """Record that an agent used a package; recording it again inserts nothing."""
        check(validate_scope_group_only(group_id))
        one_of("agent_type", agent_type, ConsumingAgent)
        if type(iteration) is not int or iteration < 0:
            raise CallRefused(f"iteration must be an integer of 0 or more, got {iteration!r}")
        self.expect_session(session_id)
        used = self.log.context.record_consumption(session_id, group_id, ConsumingAgent(agent_type), iteration, str(package_id))
        return {
            "success": True,
            "inserted": not used.already,
            "scope_id": used.scope_id,
            "session_id": session_id,
            "group_id": group_id,
            "agent_type": agent_type,
            "iteration": iteration,
            "package_id": package_id,
        }

    @answers
    def get_consumption(
        self, session_id: str, group_id: str | None = None, agent_type: str | None = None, limit: int = 50
    ) -> list[dict[str, Any]]:
        """List the recorded uses, newest first."""
        check_group(group_id)
        if (agent_type is not None and agent_type not in tuple(ConsumingAgent)) or group_id == "global":
            return []
        agent = None if agent_type is None else ConsumingAgent(agent_type)
        found = self.log.context.consumptions(session_id, group_id=group_id, agent=agent, limit=min(max(limit, 1), MOST_ROWS))
        numbers = {package: self.log.context.get(package).number for package in {use.package_id for use in found}}
        names = "scope_id session_id=run_id group_id agent_type=agent iteration"
        return [
            {**columns_of(use, names), "package_id": numbers[use.package_id], "consumed_at": stamp(use.consumed_at)}
            for use in found
        ]

    def use_resource(self, session_id: str, agent: str, kind: str, name: str, tokens: int | None) -> dict[str, Any]:
        """Record that an agent used something that is not a package, as an event."""
        payload = {"resource_type": kind, "resource_id": name, "tokens": tokens}
        entry = self.log.journal.append(
            session_id, f"Event: {_USED}", kind=EntryKind.EVENT, subtype=_USED, agent=agent, group_id="global", payload=payload
        )
        return {
            "success": True,
            "inserted": True,
            "event_id": self.number(session_id, entry.seq),
            "session_id": session_id,
            "agent_type": agent,
            **payload,
        }

    def used_resources(self, session_id: str, agent: str | None, kind: str | None, limit: int) -> list[dict[str, Any]]:
        """List the uses that `use_resource` recorded, newest first."""
        found = self.log.journal.find(session_id, kind=EntryKind.EVENT, subtype=_USED, limit=MOST_ROWS)
        rows = [
            {
                "id": self.number(session_id, entry.seq),
                "session_id": session_id,
                "agent_type": entry.agent,
                **(entry.payload if isinstance(entry.payload, dict) else {}),
                "consumed_at": stamp(entry.at),
            }
            for entry in found
        ]
        return [row for row in rows if agent in (None, row["agent_type"]) and kind in (None, row["resource_type"])][:limit]

    # Error patterns

    @answers
    def save_error_pattern(
        self,
        project_id: str,
        error_type: str,
        error_message: str,
        solution: str,
        lang: str | None = None,
        context_hints: list[str] | None = None,
        stack_pattern: list[str] | None = None,
    ) -> dict[str, Any]:
        """Save an error and its solution; count a repeated one."""
        filled("project_id", project_id)
        filled("solution", solution)
        pattern = self.log.patterns.record(
            project_id,
            error_type,
            error_message,
            solution,
            lang=given(lang),
            context_hints=context_hints,
            stack_pattern=stack_pattern,
            classic=True,
        )
        texts = [error_type, error_message, solution, *(context_hints or []), *(stack_pattern or [])]
        is_known = pattern.occurrences > 1
        return {
            "success": True,
            "pattern_hash": pattern.pattern_hash,
            "operation": "updated" if is_known else "created",
            "occurrences": pattern.occurrences,
            **({} if is_known else {"confidence": pattern.confidence}),
            "redacted": any(redaction.scan(text)[1] for text in texts),
        }

    @answers
    def get_error_patterns(
        self,
        project_id: str,
        lang: str | None = None,
        min_confidence: float = 0.7,
        limit: int = 5,
        error_type: str | None = None,
    ) -> list[dict[str, Any]]:
        """List a project's patterns, by descending confidence."""
        if limit < 1:
            raise CallRefused(f"limit must be 1 or more, got {limit}")
        wanted = MOST_ROWS if error_type is not None else min(limit, MOST_ROWS)
        found = self.log.patterns.find(
            project_id, lang=given(lang), min_confidence=min_confidence, include_expired=True, limit=wanted
        )
        fitting = [one for one in found if error_type in (None, one.signature.get("error_type"))]
        names = "pattern_hash solution confidence occurrences lang last_seen=last_seen_at signature"
        return [columns_of(pattern, names, stamp) for pattern in fitting[:limit]]

    @reports
    def update_error_pattern_confidence(self, pattern_hash: str, project_id: str, success: bool) -> dict[str, Any]:
        """Record whether a pattern's solution worked."""
        with self.log.transaction():
            before = self.log.patterns.get(pattern_hash, project_id)
            after = self.log.patterns.judge(
                pattern_hash, project_id, PatternOutcome.SUCCESS if success else PatternOutcome.FAILURE
            )
        return {
            "success": True,
            "pattern_hash": pattern_hash,
            "previous_confidence": before.confidence,
            "new_confidence": after.confidence,
            "injectable": after.is_injectable,
        }

    @answers
    def cleanup_expired_patterns(self, project_id: str | None = None) -> int:
        """Remove expired patterns; return how many."""
        return self.log.patterns.cleanup(project=given(project_id))

    @answers
    def cleanup_older_patterns(self, days: int, project_id: str | None = None) -> int:
        """Remove the patterns that were not seen for some days; return how many."""
        oldest = self.log.clock.now() - timedelta(days=days)
        sql = "delete from patterns where last_seen_at < :oldest and (project = :project or :any_project = 1) returning *"
        intake, project = Intake(self.log.parts), given(project_id)
        bound: dict[str, Any] = {"oldest": oldest, "project": project or "", "any_project": project is None}
        return len(self.log.db.write(lambda: intake.remove(ErrorPattern, sql, note=f"not seen for {days} days", **bound)))

    # Strategies

    @answers
    def save_strategy(
        self,
        project_id: str,
        topic: str,
        insight: str,
        lang: str | None = None,
        framework: str | None = None,
        strategy_id: str | None = None,
    ) -> dict[str, Any]:
        """Save an insight; a repeated one counts as more helpful. An unknown topic becomes general."""
        filled("project_id", project_id)
        filled("insight", insight)
        saved = self.log.strategies.record(
            project_id,
            StrategyTopic(topic if topic in tuple(StrategyTopic) else "general"),
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
    ) -> list[dict[str, Any]]:
        """List a project's strategies, the most helpful first; an unknown topic has none."""
        if topic is not None and topic not in tuple(StrategyTopic):
            return []
        found = self.log.strategies.find(
            project_id,
            lang=given(lang),
            framework=given(framework),
            topic=None if topic is None else StrategyTopic(topic),
            limit=min(max(limit, 1), 100),
        )
        return [strategy_row(strategy) for strategy in found]

    @reports
    def update_strategy_helpfulness(self, strategy_id: str, increment: int = 1) -> dict[str, Any]:
        """Record that a strategy helped."""
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
    ) -> dict[str, Any]:
        """Create strategies from the newest reasoning of a group; an entry counts once."""
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


def _agent(name: str, given: object) -> str:
    agent = given.strip().lower() if isinstance(given, str) else given
    one_of(name, agent, ContextAgent)
    return str(agent)


_USED = "resource_consumed"


def project_of(db: BazingaBase, session_id: str) -> str:
    """Return the project in a session's metadata, or the session itself."""
    try:
        return str(db.log.runs.get(session_id).metadata.get("project_id") or session_id)
    except NotFound:
        return session_id
