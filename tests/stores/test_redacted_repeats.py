"""A call that is repeated is known again also where redaction changed what it was given."""

from collections.abc import Callable
from typing import Any

import pytest

from decklog import Decklog

SECRET = "token=" + "gh" + "p_" + "Ab1" * 12
CALLS: dict[str, Callable[[Any, str], Any]] = {
    "artifacts.add": lambda log, run_id: log.artifacts.add(run_id, "report", f"out/{SECRET}", content="x"),
    "groups.add": lambda log, run_id: log.groups.add(run_id, "A", name=f"use {SECRET}", context_references=[SECRET]),
    "states.save": lambda log, run_id: log.states.save(run_id, "pm", {"note": f"It had {SECRET}", "token": SECRET}),
    "outputs.save": lambda log, run_id: log.outputs.save(run_id, f"lint {SECRET}", {"a": 1}, key="k"),
    "feedback.triage": lambda log, _: log.feedback.triage("fb_1", "doc", root_cause=f"It had {SECRET}"),
    "inbox.answer": lambda log, _: log.inbox.answer("msg_1", f"Use {SECRET}"),
    "runs.finish": lambda log, run_id: log.runs.finish(run_id, summary=f"It used {SECRET}"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_repeated_call_is_known_where_redaction_changed_it(log: Decklog, run_id: str, name: str) -> None:
    log.feedback.file("ana", "slow", feedback_id="fb_1")
    log.inbox.post("ana", "hello", message_id="msg_1")
    first = CALLS[name](log, run_id)
    assert not first.already
    assert SECRET.partition("=")[2] not in str(first.as_dict())
    assert CALLS[name](log, run_id).already
