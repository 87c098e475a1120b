"""Draws a workflow: as Mermaid text, or as one SVG that needs nothing else."""

from collections.abc import Iterator, Mapping
from html import escape

from decklog.stores.workflow.records import RETURN_TO_BLOCKED, RouteAction, WorkflowDefinition, WorkflowTransition

# No agent can have such a name.
_BACK, _PERSON, _END = "@back", "@person", "@end"
_TITLES = {_BACK: "the blocked agent", _PERSON: "a person", _END: "end of the run"}

# A lane for each agent and a row for each report, with an arrow to the next agent. No line crosses a text.
_LEFT, _LANE, _ROW, _TOP, _FOOT = 300, 118, 24, 110, 78
_COLOURS = {
    RouteAction.SPAWN: "#1f6feb",
    RouteAction.RESPAWN: "#9a6700",
    RouteAction.SPAWN_BATCH: "#8250df",
    RouteAction.SPAWN_MERGE: "#1a7f37",
    RouteAction.VALIDATE_THEN_END: "#57606a",
    RouteAction.PAUSE_FOR_USER: "#57606a",
    RouteAction.END_SESSION: "#57606a",
}


def mermaid(definition: WorkflowDefinition) -> str:
    """Build a Mermaid flowchart: one arrow between two agents, labelled with its reports."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for step in _steps(definition):
        arrows.setdefault((step.agent, _target(step)), []).append(step.status)
    lines = ["flowchart LR"]
    for lane in _lanes(definition):
        title = (_TITLES.get(lane) or _label(definition, lane)).replace('"', "'")
        lines.append(f'  {_node(lane)}(["{title}"])' if lane in _TITLES else f'  {_node(lane)}["{title}"]')
    for (source, target), statuses in arrows.items():
        lines.append(f'  {_node(source)} -->|"{"<br/>".join(statuses)}"| {_node(target)}')
    return "\n".join(lines) + "\n"


def _node(lane: str) -> str:
    # A prefix avoids Mermaid's keywords, such as `end`.
    return "n_" + lane.removeprefix("@")


def svg(definition: WorkflowDefinition, notes: Mapping[str, str]) -> str:
    """Build an SVG with lanes for the agents and one arrow for each report. Notes are below the lane names."""
    lanes, steps = _lanes(definition), _steps(definition)
    width, height = _LEFT + _LANE * len(lanes) + 40, _TOP + _ROW * len(steps) + _FOOT
    places = {lane: _LEFT + _LANE * number + _LANE // 2 for number, lane in enumerate(lanes)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">',
        "<title>Who comes next after each report</title>",
        *_arrow_heads(),
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *_bands(steps, width),
    ]
    for lane, x in places.items():
        parts += _lane(definition, lane, x, height)
        if note := notes.get(_TITLES.get(lane, lane)):
            place = f'x="{x}" y="{_TOP - 14}" text-anchor="middle"'
            parts.append(f'<text {place} font-weight="600" fill="#24292f">{escape(note)}</text>')
    for number, step in enumerate(steps):
        parts += _arrow(step, _TOP + _ROW * number + _ROW // 2, places)
    return "\n".join([*parts, *_legend(height - 22), "</svg>"]) + "\n"


def _target(step: WorkflowTransition) -> str:
    if step.next_agent == RETURN_TO_BLOCKED:
        return _BACK
    if step.next_agent is None:
        return _PERSON if step.action is RouteAction.PAUSE_FOR_USER else _END
    return step.next_agent


def _lanes(definition: WorkflowDefinition) -> list[str]:
    """Order the agents depth-first along the transitions, from the agent that distributes the work."""
    steps = sorted(definition.transitions.values(), key=lambda step: (step.agent, step.status))
    first = [step.agent for step in steps if step.action is RouteAction.SPAWN_BATCH]
    waiting, lanes = [*first, *sorted(definition.agents())], dict[str, None]()
    while waiting:
        lane = waiting.pop(0)
        if lane not in lanes and lane not in _TITLES:
            lanes[lane] = None
            waiting = sorted({_target(step) for step in steps if step.agent == lane} - lanes.keys()) + waiting
    reached = {_target(step) for step in steps}
    return [*lanes, *(lane for lane in _TITLES if lane in reached)]


def _steps(definition: WorkflowDefinition) -> list[WorkflowTransition]:
    lanes = _lanes(definition)
    return sorted(definition.transitions.values(), key=lambda step: (lanes.index(step.agent), step.status))


def _label(definition: WorkflowDefinition, agent: str) -> str:
    model = definition.models.get(agent)
    name = agent.replace("_", " ")
    return f"{name} ({model})" if model else name


def _arrow_heads() -> Iterator[str]:
    yield "<defs>"
    for colour in sorted(set(_COLOURS.values())):
        yield (
            f'<marker id="head{colour[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
        )
    yield "</defs>"


def _bands(steps: list[WorkflowTransition], width: int) -> Iterator[str]:
    """Shade the rows of every second agent, and write its name at the first row."""
    agents = list(dict.fromkeys(step.agent for step in steps))
    for number, agent in enumerate(agents):
        rows = [index for index, step in enumerate(steps) if step.agent == agent]
        top, size = _TOP + _ROW * rows[0], _ROW * (rows[-1] - rows[0] + 1)
        fill = "#f6f8fa" if number % 2 == 0 else "#ffffff"
        yield f'<rect x="0" y="{top}" width="{width}" height="{size}" fill="{fill}"/>'
        for line, word in enumerate(_wrapped(agent)):
            yield f'<text x="12" y="{top + 16 + 14 * line}" font-weight="600" fill="#24292f">{escape(word)}</text>'


def _lane(definition: WorkflowDefinition, lane: str, x: int, height: int) -> Iterator[str]:
    words = _wrapped(_TITLES.get(lane, lane))
    for line, word in enumerate(words):
        yield f'<text x="{x}" y="{24 + 15 * line}" text-anchor="middle" font-weight="600" fill="#24292f">{escape(word)}</text>'
    if model := definition.models.get(lane):
        y = 24 + 15 * len(words)
        yield f'<text x="{x}" y="{y}" text-anchor="middle" font-size="11" fill="#57606a">{escape(model)}</text>'
    bottom = height - _FOOT
    yield f'<line x1="{x}" y1="{_TOP - 8}" x2="{x}" y2="{bottom}" stroke="#d0d7de" stroke-dasharray="2 3"/>'
    for line, word in enumerate(words):
        y = bottom + 14 + 12 * line
        yield f'<text x="{x}" y="{y}" text-anchor="middle" font-size="10" fill="#57606a">{escape(word)}</text>'


def _wrapped(name: str) -> list[str]:
    """Break a name into lines of at most about twelve letters."""
    lines: list[str] = []
    for word in name.replace("_", " ").split():
        if lines and len(lines[-1]) + len(word) < 12:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _arrow(step: WorkflowTransition, y: int, places: dict[str, int]) -> Iterator[str]:
    colour, start, end = _COLOURS[step.action], places[step.agent], places[_target(step)]
    yield f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end" font-size="11" fill="#24292f">{escape(_report(step))}</text>'
    yield f'<circle cx="{start}" cy="{y}" r="3.5" fill="{colour}"/>'
    style = f'stroke="{colour}" stroke-width="1.6" fill="none" marker-end="url(#head{colour[1:]})"'
    if start == end:
        yield f'<path d="M{start} {y - 5}C{start + 34} {y - 12} {start + 34} {y + 12} {start + 5} {y + 4}" {style}/>'
    else:
        yield f'<path d="M{start} {y}L{end - 2 if end > start else end + 2} {y}" {style}/>'


def _report(step: WorkflowTransition) -> str:
    """Return the label of a report, with its special rules."""
    notes = []
    if step.escalation_check:
        notes.append("escalates")
    if step.max_parallel:
        notes.append(f"up to {step.max_parallel}")
    if step.action is RouteAction.VALIDATE_THEN_END:
        notes.append("validated first")
    if step.bypass_qa:
        notes.append("without QA")
    if step.iteration_budget:
        notes.append(f"at most {step.iteration_budget}×")
    return step.status + (f" ({', '.join(notes)})" if notes else "")


def _legend(y: int) -> Iterator[str]:
    shown = {
        "spawn": RouteAction.SPAWN,
        "respawn": RouteAction.RESPAWN,
        "spawn a batch": RouteAction.SPAWN_BATCH,
        "spawn to merge": RouteAction.SPAWN_MERGE,
        "pause or end": RouteAction.END_SESSION,
    }
    for number, (title, action) in enumerate(shown.items()):
        x = _LEFT + 150 * number
        yield f'<line x1="{x}" y1="{y}" x2="{x + 24}" y2="{y}" stroke="{_COLOURS[action]}" stroke-width="3"/>'
        yield f'<text x="{x + 30}" y="{y + 4}" fill="#24292f">{title}</text>'
