"""Workflow: the transitions between roles and the work at each role, as a picture and as tables; and its versions."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from decklog import WorkflowDrawing
from decklog.web.site import PageView, SiteRequest

# Counts of each agent: label, and symbol in the picture.
COUNTED = {
    "to_do": ("pending", "○"),
    "working": ("running", "▶"),
    "blocked_or_paused": ("blocked or paused", "‖"),
    "failed": ("failed", "⊗"),
}
_FIELDS = (*COUNTED, "groups", "failed_groups")
_PERSON = "a person"
# Counts stop at this number.
_MOST = 1000


def read(asked: SiteRequest) -> PageView:
    """Load the active workflow, and the work at each of its roles."""
    workflow = asked.log.workflow
    steps, versions = workflow.transitions(), workflow.versions(limit=20)
    by_agent: dict[str, list[object]] = {}
    for step in steps:
        by_agent.setdefault(step.agent, []).append(step)
    decisions = asked.log.overview.decisions()
    stations = stations_of(list(by_agent), asked.log.overview.stations())
    shown: dict[str, Any] = {"versions": versions, "rules": workflow.rules(), "counted_as": COUNTED}
    shown |= {"stations": stations, "most": _MOST, "idle": [one["who"] for one in stations if not one["has_any"]]}
    shown["has_work"] = any(one["has_any"] for one in stations)
    shown |= _roles(by_agent, stations, is_all=asked.word("roles") == "all")
    shown["picture"] = sha256(repr(notes_of(stations, decisions)).encode()).hexdigest()[:12]
    data = {"transitions": steps, "versions": versions, "stations": stations}
    return PageView("workflow.html", "Workflow", "decklog overview stations", data, shown, place="more", decisions=decisions)


def _roles(by_agent: dict[str, list[object]], stations: Sequence[Mapping[str, Any]], *, is_all: bool) -> dict[str, Any]:
    """Select the roles whose steps are shown: those with work, or all if requested or if none has work."""
    used = {one["who"] for one in stations if one["has_any"] and one["is_known"]}
    shown = {agent: steps for agent, steps in by_agent.items() if is_all or not used or agent in used}
    return {"by_agent": shown, "is_all": is_all, "unused": len(by_agent) - len(shown)}


def stations_of(agents: list[str], found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Sum up the work at each role of the workflow, followed by agents that are not part of it."""
    known = {agent: {"who": agent, "is_known": True, **dict.fromkeys(_FIELDS, 0)} for agent in agents}
    others: dict[str | None, dict[str, Any]] = {}
    for one in found:
        who = one["who"]
        # Agents of one role differ by a number: developer-2 is a developer.
        agent = "" if who is None else re.sub(r"[-_ ]?\d+$", "", who.lower())
        whole = known.get(agent) or others.setdefault(who, {"who": who, "is_known": False, **dict.fromkeys(_FIELDS, 0)})
        for name in _FIELDS:
            whole[name] += one[name]
    return [{**one, "has_any": any(one[name] for name in _FIELDS)} for one in (*known.values(), *others.values())]


def notes_of(stations: list[dict[str, Any]], decisions: int) -> dict[str, str]:
    """Format the work at each role for the picture: a symbol and a number for each kind."""
    notes = {}
    for one in stations:
        signs = [f"{sign} {_many(one[name])}" for name, (_, sign) in COUNTED.items() if one[name]]
        if signs and one["is_known"]:
            notes[one["who"]] = "  ".join(signs)
    return notes | ({_PERSON: f"▲ {decisions}"} if decisions else {})


def _many(count: int) -> str:
    return f"{count}+" if count >= _MOST else str(count)


def picture(asked: SiteRequest) -> str:
    """Draw the workflow with its counts as SVG."""
    workflow, overview = asked.log.workflow, asked.log.overview
    agents = dict.fromkeys(step.agent for step in workflow.transitions())
    notes = notes_of(stations_of(list(agents), overview.stations()), overview.decisions())
    return workflow.draw(format=WorkflowDrawing.SVG, notes=notes)
