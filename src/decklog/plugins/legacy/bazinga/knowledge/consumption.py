"""Consumption: which agent used which package, in which iteration of a group's work."""

from typing import TYPE_CHECKING

from decklog.journal.entry import EntryKind
from decklog.plugins.legacy.bazinga.base import MOST_ROWS, CallRefused, Desk, answers, check, one_of, stamp
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.rules import CONSUMING_AGENTS, validate_scope_global_or_group, validate_scope_group_only
from decklog.stores.workflow.context import ConsumingAgent, ContextConsumption

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

_USED = "resource_consumed"


class Consumptions(Desk):
    """Records what was used once, and lists it."""

    @answers
    def save_consumption(
        self, session_id: str, group_id: str, agent_type: str, iteration: int, package_id: int
    ) -> "dict[str, Any]":
        """Record that an agent used a package; recording it again inserts nothing."""
        check(validate_scope_group_only(group_id))
        one_of("agent_type", agent_type, CONSUMING_AGENTS)
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
    ) -> "list[dict[str, Any]]":
        """List what was used, newest first."""
        if group_id is not None:
            check(validate_scope_global_or_group(group_id))
        if (agent_type is not None and agent_type not in CONSUMING_AGENTS) or group_id == "global":
            return []
        found = self.log.context.consumptions(
            session_id,
            group_id=group_id,
            agent=None if agent_type is None else ConsumingAgent(agent_type),
            limit=min(max(limit, 1), MOST_ROWS),
        )
        numbers = {package: self.log.context.get(package).number for package in {use.package_id for use in found}}
        return [_row(use, numbers[use.package_id]) for use in found]

    def use_resource(self, session_id: str, agent: str, kind: str, name: str, tokens: int | None) -> "dict[str, Any]":
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

    def used_resources(self, session_id: str, agent: str | None, kind: str | None, limit: int) -> "list[dict[str, Any]]":
        """List what was recorded with `use_resource`, newest first."""
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


def _row(use: ContextConsumption, package: int) -> "dict[str, Any]":
    return {
        "scope_id": use.scope_id,
        "session_id": use.run_id,
        "group_id": use.group_id,
        "agent_type": str(use.agent),
        "iteration": use.iteration,
        "package_id": package,
        "consumed_at": stamp(use.consumed_at),
    }


# Commands

DESK = Consumptions


def save_consumption(desk: Consumptions, words: "UsageValues") -> ProgramReply:
    if words["group"] in CONSUMING_AGENTS and words["agent"] not in CONSUMING_AGENTS:
        # SESSION AGENT RESOURCE_TYPE ID [TOKENS]
        tokens = words.whole("package", low=0)
        used = desk.use_resource(words["session"], words["group"], words["agent"], words["iteration"], tokens)
        return ProgramReply(used, said=f"Consumption saved: {words['agent']} {words['iteration']}")
    if words.get("package") is None:
        from decklog.plugins.legacy.bazinga.program.usage import Misuse

        raise Misuse("Missing argument: PACKAGE")
    iteration, package = words.whole("iteration"), words.whole("package")
    assert iteration is not None
    assert package is not None
    saved = desk.save_consumption(words["session"], words["group"], words["agent"], iteration, package)
    return ProgramReply(saved, said="ContextConsumption saved" if saved["inserted"] else "ContextConsumption already saved")


def get_consumption(desk: Consumptions, words: "UsageValues") -> ProgramReply:
    limit = words.whole("limit")
    most = min(max(50 if limit is None else limit, 1), MOST_ROWS)
    agent = words.get("agent") if words.get("agent") is not None else words.get("agent-type")
    kind = words.get("type")
    found = [] if kind is not None else desk.get_consumption(words["session"], words.get("group-id"), agent, most)
    if words.get("agent") is not None:
        found += desk.used_resources(words["session"], agent, kind, most)
    return ProgramReply(found[:most])
