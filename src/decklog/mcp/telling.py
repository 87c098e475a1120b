"""Describe an agent's situation in terms of the tools."""

from decklog.agents.prime import Prime, Wording
from decklog.shortcuts.caller import Caller

TOOLS = Wording(
    next="The tool next",
    mark_seen="the tool inbox marks them as seen",
    title="Tools:",
    lines=(
        "next: your task, or the next one; done, fail or block ends it",
        "note: write down what you decided and why; ask: ask a person",
        "recall: what was learned before; remember: keep what you learned",
    ),
)


def situation(me: Caller) -> str:
    """Return an agent's situation: task, messages, budget and lessons."""
    claim = me.claim()
    task_id = claim.task_id if claim is not None else None
    prime = Prime(me.log, worker=me.worker.name, run_id=me.find_run(claim), task_id=task_id, wording=TOOLS)
    return prime.text().rstrip("\n")
