"""Messages to an agent that works: its client hands them on at once, or at the end of its turn, and none is lost."""

import json
import signal
import sys
import threading
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.conductor.conductor import Conductor
from decklog.conductor.items.item import Rounds, find_item
from tests.conductor.plans import SETTINGS, Work, landed, landed_titles, settle, states, work_item
from tests.conductor.scripts import COMMAND
from tests.conductor.scripts import script as written
from tests.conductor.test_kills import conducted
from tests.waiting import wait_until

HERE = Path(__file__).parent
EVENTS = """events = [
    { when = { "/type" = "text" }, as = "text", take = { text = "/text" } },
    { when = { "/type" = "delivered" }, as = "delivered", take = { message = "/message", text = "/text" } },
]"""


def streaming(going: Path) -> str:
    words = [sys.executable, "-I", "-S", str(HERE / "fake_stream_agent.py"), str(going)]
    return SETTINGS.replace(
        f'command = {json.dumps(COMMAND)}\ncommits = "conductor"',
        f'command = {json.dumps(words)}\nprompt = "stream-json"\nstream = "jsonl"\n{EVENTS}',
    )


def by_protocol() -> str:
    words = [sys.executable, str(HERE / "fake_acp_agent.py")]
    return SETTINGS.replace(
        f'command = {json.dumps(COMMAND)}\ncommits = "conductor"', f'extends = "acp"\ncommand = {json.dumps(words)}'
    )


@pytest.mark.slow
def test_a_message_reaches_a_program_that_takes_lines_of_json_while_it_works(log: Decklog, checked: Path, tmp_path: Path) -> None:
    going = tmp_path / "go"
    settle(checked, streaming(going))
    context = Work(log, checked, work_item("it")).context()
    thread = threading.Thread(target=Conductor(context).run)
    thread.start()
    wait_until(lambda: bool(log.journal.find(context.run_id, subtype="agent.text")))
    message = Rounds(context).post(find_item(log, context.run_id, "it"), "Say more.", by="Ana")
    # Delivered before its turn is over.
    wait_until(lambda: log.inbox.get(message.id).state == "seen")
    going.write_text("")
    thread.join()
    assert landed(context, "said.txt").split("\n") == ["# Item it", "Say more."], states(context)
    told = log.inbox.get(message.id)
    assert (told.seen_by, told.answer) == ("fake", f"landed as {context.target_commit()[:12]}")
    assert [entry.body for entry in log.journal.find(context.run_id, subtype="agent.delivered")] == ["Say more."]
    assert states(context) == dict.fromkeys(("it.w1", "it.c1", "it"), "done")


@pytest.mark.slow
def test_an_agent_of_the_protocol_gets_a_message_as_its_next_prompt(log: Decklog, checked: Path, tmp_path: Path) -> None:
    going = tmp_path / "go"
    settle(checked, by_protocol())
    script = [["append", "notes.txt", "four\n"], ["say", "I wait."], ["wait", str(going)]]
    context = Work(log, checked, work_item("it", *script)).context()
    thread = threading.Thread(target=Conductor(context).run)
    thread.start()
    wait_until(lambda: bool(log.journal.find(context.run_id, subtype="agent.start")))
    more = f"Say more.\n{written(['append', 'notes.txt', 'five' + chr(10)])}"
    message = Rounds(context).post(find_item(log, context.run_id, "it"), more, by="Ana")
    wait_until(lambda: any(context.folder.glob(f"*/answers/message-{message.id}.json")))
    going.write_text("")
    thread.join()
    assert landed(context, "notes.txt").split("\n")[-2:] == ["four", "five"], states(context)
    assert log.inbox.get(message.id).seen_by == "fake"
    assert len(log.effects.find(context.run_id, tool="conductor.spawn")) == 1


@pytest.mark.slow
def test_a_message_of_a_brief_is_delivered_with_it_also_to_an_agent_whose_conductor_died(
    sqlite_target: str, checked: Path, tmp_path: Path
) -> None:
    brief = tmp_path / "brief"
    item = work_item("it", ["append", "notes.txt", "four\n"], ["copy-brief", str(brief)])
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, item).context()
        message = Rounds(context).post(find_item(log, context.run_id, "it"), "Add four.", by="Ana")
    assert conducted(sqlite_target, checked, (item,), "spawn:done") == -signal.SIGKILL
    with Decklog.open(sqlite_target) as log:
        assert log.inbox.get(message.id).state == "pending"
        context = Work(log, checked, item).run()
        assert landed_titles(context) == ["Item it"], states(context)
        assert "Add four." in brief.read_text()
        assert log.inbox.get(message.id).state == "answered"
        assert states(context) == dict.fromkeys(("it.w1", "it.c1", "it"), "done"), "it took no second round"
