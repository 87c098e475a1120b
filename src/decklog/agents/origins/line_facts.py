"""Facts about a line as short labelled texts, for terminals, agents and web pages."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from decklog.agents.origins.costs import NO_COST
from decklog.core.figures import dollars

if TYPE_CHECKING:
    from decklog.agents.origins.costs import WorkCost
    from decklog.agents.origins.edit_story import EditStory
    from decklog.agents.origins.line_story import LineStory
    from decklog.journal.entry import Entry
    from decklog.provenance.attribution import Origin

_MOST_APPROVALS = 2


class LineFact(NamedTuple):
    """A labelled text. `entry` is the id of its journal entry."""

    label: str
    text: str
    entry: str | None = None


def facts_of(story: "LineStory") -> Iterator[LineFact]:
    """Yield the facts about a line, most important first."""
    line = story.line
    yield LineFact("origin", origin_text(story.origin))
    for one in story.stories:
        yield from _edit_facts(one)
    if story.is_committed:
        yield LineFact("commit", f"{line.commit[:10]} by {line.facts.get('author', '')}: {line.facts.get('summary', '')}")
    else:
        yield LineFact("commit", "not committed")
    for before in story.previous:
        yield LineFact("before", f"{before.text}  ({origin_text(before.origin)}, {before.commit[:10]})")
    if story.later is not None:
        later = story.later
        yield LineFact("later", f"changed in {later.commit[:10]} by {later.author}: {later.subject}")
    if not story.stories and story.origin.kind == "unknown":
        yield LineFact("note", "no recorded edit wrote this line; unknown is not a person")


def _edit_facts(story: "EditStory") -> Iterator[LineFact]:
    edit = story.edit
    if edit.session is None:
        return
    model = f", {story.model}" if story.model else ""
    how = "" if edit.kind.value == "tool" else f", {edit.kind.value}"
    yield LineFact("session", f"{edit.session}{model}{how}, {edit.edited_at:%Y-%m-%d %H:%M} UTC")
    yield from _entry_facts("prompt", story.prompt)
    yield from _entry_facts("said", story.said)
    yield from _entry_facts("call", story.call)
    if story.task is not None:
        task = story.task
        yield LineFact("task", f"{task.id} {task.title} ({task.state.value}), run {task.run_id}")
    elif story.run is not None:
        yield LineFact("run", f"{story.run.id} {story.run.goal}")
    if story.test is not None:
        yield LineFact("tests", f"{story.test.outcome or 'no result'}: {story.test.command}", story.test.entry)
    for review in story.reviews[:1]:
        confidence = "" if review.confidence is None else f", confidence {review.confidence}"
        yield LineFact("review", f"{review.verdict.value}{confidence} ({review.id})")
    for approval in story.approvals[:_MOST_APPROVALS]:
        yield LineFact("approved", f"by {approval.decided_by}: {approval.question or approval.subject or ''}")
    if story.cost != NO_COST:
        yield LineFact("cost", f"{cost_text(story.cost)} for the whole {'task' if story.task else 'session'}")


def _entry_facts(label: str, entry: "Entry | None") -> Iterator[LineFact]:
    if entry is not None:
        yield LineFact(label, entry.body or "", entry.id)


def origin_text(origin: "Origin") -> str:
    """Return an origin as text."""
    if origin.kind == "agent":
        return f"agent {' + '.join(origin.sessions)}"
    if origin.kind == "mixed":
        return f"mixed: {' + '.join(origin.sessions)} worked here at the same time"
    return f"person {origin.person}" if origin.person else origin.kind


def cost_text(cost: "WorkCost") -> str:
    """Return a cost in dollars, or "unpriced" if no call has a known price."""
    if not cost.microdollars and cost.unpriced_calls:
        return "unpriced"
    return dollars(cost.microdollars)
