"""Workflow: who comes next after each report, as a picture and as a table, and which versions were loaded."""

from decklog import WorkflowDrawing
from decklog.web.site import Asked, View


def read(asked: Asked) -> View:
    """Read the workflow that is in force."""
    workflow = asked.log.workflow
    steps, versions = workflow.transitions(), workflow.versions(limit=20)
    by_agent: dict[str, list[object]] = {}
    for step in steps:
        by_agent.setdefault(step.agent, []).append(step)
    shown = {"by_agent": by_agent, "versions": versions, "rules": workflow.rules()}
    data = {"transitions": steps, "versions": versions}
    return View("workflow.html", "Workflow", "decklog workflow transitions", data, shown, place="more")


def picture(asked: Asked) -> str:
    """Draw it."""
    return asked.log.workflow.draw(format=WorkflowDrawing.SVG)
