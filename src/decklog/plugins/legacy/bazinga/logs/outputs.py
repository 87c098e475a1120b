"""Skill outputs, and whether the mandatory ones are recent."""

from typing import TYPE_CHECKING

from decklog.plugins.legacy.bazinga.base import MOST_ROWS, CallRefused, Desk, answers, check, filled, given, stamp
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.rules import validate_scope_global_or_group

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues
    from decklog.stores.artifacts.outputs import SkillOutput


class BazingaOutputs(Desk):
    """Keeps every output of every skill, numbered by skill, agent and group."""

    @answers
    def save_skill_output(
        self, session_id: str, skill_name: str, output_data: "Any", agent_type: str | None = None, group_id: str | None = None
    ) -> int:
        """Save what a skill gave back; give its iteration."""
        filled("skill_name", skill_name)
        group_id = given(group_id)
        if group_id is not None:
            check(validate_scope_global_or_group(group_id))
        saved = self.log.outputs.save(session_id, skill_name, output_data, agent=given(agent_type), group_id=group_id)
        return saved.iteration

    @answers
    def get_skill_output(
        self, session_id: str, skill_name: str, agent_type: str | None = None, group_id: str | None = None
    ) -> "Any":
        """Return the newest output of a skill; None when there is none."""
        found = self.log.outputs.latest(session_id, skill_name, agent=given(agent_type), group_id=given(group_id))
        return None if found is None else found.document

    @answers
    def get_skill_output_all(
        self, session_id: str, skill_name: str | None = None, agent_type: str | None = None, group_id: str | None = None
    ) -> "list[dict[str, Any]]":
        """List the outputs of a skill, or of all of them, newest first."""
        found: list[SkillOutput] = []
        after = None
        while True:
            page = self.log.outputs.find(
                session_id,
                skill=skill_name,
                agent=given(agent_type),
                group_id=given(group_id),
                limit=MOST_ROWS,
                after=after,
            )
            found += page
            after = page.next
            if after is None:
                break
        return [_row(output, with_skill=skill_name is None) for output in found]

    @answers
    def check_skill_evidence(
        self, session_id: str, mandatory_skills: list[str], agent_type: str | None = None, since_minutes: int = 30
    ) -> "dict[str, Any]":
        """Return which of the skills gave an output in the last minutes."""
        if type(since_minutes) is not int or since_minutes < 1:
            raise CallRefused(f"since_minutes must be a positive integer, got {since_minutes!r}")
        if not self.is_session(session_id):
            names = [name.strip() for name in mandatory_skills if name.strip()]
            return _evidence([], names, since_minutes)
        found = self.log.outputs.check_evidence(
            session_id, mandatory_skills, agent=given(agent_type), since_minutes=since_minutes
        )
        return dict(found)


def _evidence(found: list[str], mandatory: list[str], minutes: int) -> "dict[str, Any]":
    return {
        "complete": not mandatory,
        "missing": mandatory,
        "found": found,
        "mandatory": mandatory,
        "recency_window_minutes": minutes,
    }


def _row(output: "SkillOutput", *, with_skill: bool) -> "dict[str, Any]":
    row: dict[str, Any] = {"skill_name": output.skill} if with_skill else {}
    return {
        **row,
        "iteration": output.iteration,
        "agent_type": output.agent,
        "group_id": output.group_id,
        "timestamp": stamp(output.saved_at),
        "output_data": output.document,
    }


# Commands

DESK = BazingaOutputs


def save_skill_output(desk: BazingaOutputs, words: "UsageValues") -> ProgramReply:
    skill, group, name = words["skill"], words.get("group"), "json"
    if words.get("output") is not None:
        # SESSION GROUP SKILL JSON: the group may also stand where it does in other commands.
        group, skill, name = words["skill"], words["json"], "output"
    iteration = desk.save_skill_output(words["session"], skill, words.json(name), words.get("agent"), group)
    return ProgramReply({"iteration": iteration}, line=True)


def get_skill_output(desk: BazingaOutputs, words: "UsageValues") -> ProgramReply:
    session, skill, agent, group = words["session"], words["skill"], words.get("agent"), words.get("in_group")
    if group is None:
        return ProgramReply(desk.get_skill_output(session, skill, agent, words.get("group")))
    found = desk.get_skill_output(session, skill, agent, group)
    # As in save-skill-output, the group may stand first.
    return ProgramReply(desk.get_skill_output(session, group, agent, skill) if found is None else found)


def get_skill_output_all(desk: BazingaOutputs, words: "UsageValues") -> ProgramReply:
    return ProgramReply(desk.get_skill_output_all(words["session"], words.get("skill"), words.get("agent"), words.get("group")))


def check_skill_evidence(desk: BazingaOutputs, words: "UsageValues") -> ProgramReply:
    minutes = words.whole("since", low=1)
    skills = words["skills"].split(",")
    return ProgramReply(
        desk.check_skill_evidence(words["session"], skills, words.get("agent"), 30 if minutes is None else minutes)
    )
