"""Claims about the toolbox itself: what it is bound to, what it refuses, what it writes down."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, Denied, Invalid, NotFound
from decklog.core.errors import Refused, Unavailable
from decklog.guard import Toolbox
from decklog.guard.toolbox.toolbox import LONGEST_TEXT


class Tier:
    """A trust that permits what it is told to."""

    def __init__(self, *permitted: str) -> None:
        self.permitted = permitted

    def may(self, action: str) -> Mapping[str, Any]:
        return {"allowed": action in self.permitted, "reason": f"{action} in {self.permitted}"}


def newest(log: Decklog, run_id: str) -> dict[str, Any]:
    payload: dict[str, Any] = log.journal.find(run_id, kind="tool", limit=1)[0].payload
    return payload


def test_a_tool_can_be_called_as_a_method_by_position(box: Toolbox, place: Path) -> None:
    box.write_file("a.txt", "one\ntwo\n")
    assert box.read_file("a.txt", 2).text == "two\n"
    assert (place / "a.txt").read_text() == "one\ntwo\n"
    with pytest.raises(Invalid, match="takes 2 arguments"):
        box.write_file("a", "b", "c")
    with pytest.raises(AttributeError):
        box.no_such_tool("x")


def test_a_call_belongs_to_its_task_and_agent(log: Decklog, run_id: str, make_box: Callable[..., Toolbox]) -> None:
    task = log.tasks.add(run_id, "Mend it")
    make_box(task=task.id).write_file("a.txt", "x")
    entry = log.journal.find(run_id, kind="tool")[0]
    assert (entry.task_id, entry.agent, entry.subtype) == (task.id, "dev", "write_file")


def test_writing_stays_within_the_paths_of_the_task(log: Decklog, run_id: str, make_box: Callable[..., Toolbox]) -> None:
    task = log.tasks.add(run_id, "Write docs", allowed_paths=["docs/**"])
    box = make_box(task=task.id)
    box.write_file("docs/a.md", "x")
    for tool, arguments in (
        ("write_file", {"path": "src/a.py", "content": "x"}),
        ("apply_patch", {"text": "--- /dev/null\n+++ b/src/a.py\n@@ -0,0 +1 @@\n+x\n"}),
    ):
        with pytest.raises(Denied, match="allowed paths"):
            box.call(tool, arguments)
        assert newest(log, run_id)["guard"]["rule"] == "not-allowed"


def test_a_task_of_another_run_is_refused(log: Decklog, make_box: Callable[..., Toolbox]) -> None:
    other = log.runs.start("other")
    task = log.tasks.add(other.id, "theirs")
    with pytest.raises(Invalid, match="belongs to run"):
        make_box(task=task.id)


def test_an_unknown_run_is_refused(log: Decklog, place: Path) -> None:
    with pytest.raises(NotFound):
        Toolbox(log, "run_nowhere", root=place)


def test_trust_has_its_say_before_anything_is_done(
    log: Decklog, run_id: str, make_box: Callable[..., Toolbox], place: Path
) -> None:
    box = make_box(trust=Tier("read_file"))
    (place / "a.txt").write_text("x")
    assert box.read_file("a.txt").text == "x"
    for tool, arguments in (
        ("write_file", {"path": "b.txt", "content": "x"}),
        ("apply_patch", {"text": "--- /dev/null\n+++ b/c.txt\n@@ -0,0 +1 @@\n+x\n"}),
        ("run", {"command": ["touch", "d.txt"]}),
    ):
        with pytest.raises(Refused, match="Trust does not permit"):
            box.call(tool, arguments, step="s1")
        assert newest(log, run_id)["guard"]["rule"] == "trust"
    assert [path.name for path in place.iterdir()] == ["a.txt"]
    assert log.effects.find(run_id) == []


def test_arguments_are_checked_by_the_signature(log: Decklog, run_id: str, box: Toolbox) -> None:
    for arguments, words in (
        ({}, "needs path"),
        ({"path": 3}, "path can't be 3"),
        ({"path": "a", "start_line": True}, "start_line can't be True"),
        ({"path": "a", "start_line": 1.5}, "start_line can't be 1.5"),
        ({"path": "a", "colour": "red"}, "has no parameter colour"),
        ({"path": "a", "limit": 10}, "has no parameter limit"),
    ):
        with pytest.raises(Invalid, match=words):
            box.call("read_file", arguments)
        assert newest(log, run_id)["error"]["code"] == "invalid"
    with pytest.raises(Invalid, match="command can't be"):
        box.call("run", {"command": ["ls", 3]})


def test_an_unknown_tool_is_on_record_too(log: Decklog, run_id: str, box: Toolbox) -> None:
    with pytest.raises(NotFound, match="no tool 'fly'"):
        box.call("fly", {"to": "moon"})
    assert newest(log, run_id)["arguments"] == {"to": "moon"}


def test_bytes_that_are_no_text_do_not_keep_a_call_off_the_record(log: Decklog, run_id: str, box: Toolbox, place: Path) -> None:
    (place / "a.bin").write_bytes(b"\x00\xff\x00")
    assert box.read_file("a.bin").text == "\x00\xff\x00"
    assert newest(log, run_id)["result"]["text"] == "\ufffdÿ\ufffd"
    with pytest.raises(Invalid):
        box.write_file("b.txt", "half \ud800")
    assert newest(log, run_id)["arguments"]["content"] == "half ?"


def test_a_large_result_is_recorded_by_its_ends_and_its_digest(log: Decklog, run_id: str, box: Toolbox, place: Path) -> None:
    (place / "big.txt").write_text("a" * LONGEST_TEXT + "b" * LONGEST_TEXT)
    assert len(box.read_file("big.txt").text) == 2 * LONGEST_TEXT
    recorded = newest(log, run_id)["result"]["text"]
    assert recorded.startswith("aaa")
    assert recorded.endswith("bbb")
    assert "sha256 of the whole" in recorded
    assert len(recorded) < LONGEST_TEXT + 200
    assert log.journal.find(run_id, kind="tool", limit=1)[0].payload_digest is not None


def test_a_problem_of_the_system_is_one_of_our_errors(make_box: Callable[..., Toolbox]) -> None:
    def trip() -> None:
        """Fall over."""
        raise OSError(5, "Input/output error")

    with pytest.raises(Unavailable, match="Input/output error"):
        make_box(tools=[trip]).call("trip")


def test_a_fault_of_a_tool_is_on_record_and_not_hidden(log: Decklog, run_id: str, make_box: Callable[..., Toolbox]) -> None:
    def divide() -> float:
        """Divide by nothing."""
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        make_box(tools=[divide]).call("divide")
    assert "ZeroDivisionError" in newest(log, run_id)["error"]["message"]


def test_the_log_verifies_after_tools_were_used(log: Decklog, box: Toolbox) -> None:
    box.write_file("a.txt", "x", step="one")
    box.run(["cat", "a.txt"], step="two")
    box.start_process(["true"])
    assert log.journal.verify().ok


def test_a_tool_is_not_called_inside_of_a_transaction(log: Decklog, box: Toolbox, place: Path) -> None:
    with log.transaction():
        assert log.is_in_transaction
        with pytest.raises(Invalid, match="inside a transaction"):
            box.write_file("a.txt", "x", step="s1")
    assert not log.is_in_transaction
    assert not (place / "a.txt").exists()
    box.write_file("a.txt", "x", step="s1")


@pytest.mark.slow
def test_a_very_long_list_does_not_keep_a_call_off_the_record(
    log: Decklog, run_id: str, make_box: Callable[..., Toolbox]
) -> None:
    def count(to: int) -> list[str]:
        """Count in long words."""
        return [f"{number:0100}" for number in range(to)]

    assert len(make_box(tools=[count]).call("count", {"to": 200_000})) == 200_000
    recorded = newest(log, run_id)["result"]
    assert recorded["left_out_characters"] > 20_000_000
    assert recorded["beginning"].startswith('["000')


def test_arguments_that_json_has_no_form_for_are_on_record(log: Decklog, run_id: str, box: Toolbox) -> None:
    with pytest.raises(Invalid):
        box.call("run", {"command": ["true"], "timeout_seconds": float("nan")})
    assert newest(log, run_id)["arguments"]["timeout_seconds"] == "nan"
    with pytest.raises(Invalid):
        box.call("read_file", {"path": b"bytes"})
    assert newest(log, run_id)["arguments"]["path"] == "b'bytes'"


def test_the_cap_on_output_has_a_bound(make_box: Callable[..., Toolbox]) -> None:
    for cap in (0, -1, 100_000_000):
        with pytest.raises(Invalid, match="cap_bytes"):
            make_box(cap_bytes=cap)
