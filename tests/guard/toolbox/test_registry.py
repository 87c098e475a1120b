"""Claims about every tool at once: none may be added that does not hold to them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, DecklogError
from decklog.guard import Toolbox
from decklog.guard.toolbox.catalogue import TOOLS

# Assembled here, so that no file of the repository holds something that looks like a secret.
CANARY = "ghp_" + "R4nd0mC4n4ryV4lu3F0rT3st1ng" + "Zx9Qw8Er7"
NAMES = [tool.name for tool in TOOLS]

# Arguments with which each tool succeeds, and some with which it fails; both carry the canary.
GOOD: dict[str, dict[str, Any]] = {
    "read_file": {"path": "secret.txt"},
    "list_files": {"path": ".", "pattern": f"*{CANARY}*"},
    "glob": {"pattern": f"*{CANARY}*"},
    "grep": {"pattern": CANARY},
    "find_symbol": {"symbol": CANARY},
    "generate_diff": {"a_path": "secret.txt", "b_path": "plain.txt"},
    "write_file": {"path": "new.txt", "content": f"token {CANARY}\n"},
    "edit_file": {"path": "plain.txt", "old_string": "plain", "new_string": CANARY},
    "apply_patch": {"text": f"--- /dev/null\n+++ b/patched.txt\n@@ -0,0 +1 @@\n+{CANARY}\n"},
    "run": {"command": ["printf", "%s", CANARY]},
    "start_process": {"command": ["printf", "%s", CANARY]},
    "list_processes": {},
    "process_logs": {"tail_lines": 5},
    "stop_process": {"force": True},
}
BAD: dict[str, dict[str, Any]] = {
    "read_file": {"path": f"missing-{CANARY}"},
    "list_files": {"path": f"../{CANARY}"},
    "glob": {"pattern": "*", "path": f"/{CANARY}"},
    "grep": {"pattern": f"({CANARY}"},
    "find_symbol": {"symbol": "x", "kind": CANARY},
    "generate_diff": {"a_path": CANARY, "b_path": CANARY},
    "write_file": {"path": f"../{CANARY}", "content": ""},
    "edit_file": {"path": "plain.txt", "old_string": CANARY, "new_string": ""},
    "apply_patch": {"text": CANARY},
    "run": {"command": ["sudo", CANARY]},
    "start_process": {"command": [f"no-such-program-{CANARY}"]},
    "list_processes": {"token": CANARY},
    "process_logs": {"process_id": CANARY},
    "stop_process": {"process_id": CANARY},
}


@pytest.fixture
def furnished(box: Toolbox, place: Path) -> Toolbox:
    (place / "secret.txt").write_text(f"token {CANARY}\n")
    (place / "plain.txt").write_text("plain\n")
    return box


def arguments_for(box: Toolbox, name: str) -> dict[str, Any]:
    given = dict(GOOD[name])
    if name in ("process_logs", "stop_process"):
        given["process_id"] = box.start_process(["printf", "%s", CANARY]).process_id
    return given


def test_the_catalogue_has_the_tools_that_an_agent_needs() -> None:
    assert set(NAMES) == set(GOOD) == set(BAD)
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("tool", TOOLS, ids=NAMES)
def test_every_tool_describes_itself_to_a_model(tool: Any) -> None:
    described = json.loads(json.dumps(tool.as_dict()))
    assert tool.summary.endswith(".")
    assert described["name"] == tool.name
    assert described["input_schema"]["type"] == "object"
    assert described["input_schema"]["additionalProperties"] is False
    assert not {"root", "call"} & described["input_schema"]["properties"].keys()
    for described_parameter in described["input_schema"]["properties"].values():
        assert {"type", "anyOf", "enum"} & described_parameter.keys()


@pytest.mark.parametrize("name", NAMES)
def test_every_call_is_on_record_without_its_secrets(log: Decklog, furnished: Toolbox, run_id: str, name: str) -> None:
    arguments = arguments_for(furnished, name)
    furnished.call(name, arguments)
    entry = log.journal.find(run_id, kind="tool", subtype=name)[0]
    assert entry.agent == "dev"
    assert entry.payload["tool"] == name
    assert entry.payload["arguments"].keys() == arguments.keys()
    assert "result" in entry.payload
    assert entry.payload["duration_ms"] >= 0
    assert "guard" in entry.payload
    assert_no_canary(log)


@pytest.mark.parametrize("name", NAMES)
def test_a_failing_call_raises_one_of_our_errors_and_is_on_record(
    log: Decklog, furnished: Toolbox, run_id: str, name: str
) -> None:
    with pytest.raises(DecklogError) as caught:
        furnished.call(name, BAD[name])
    entry = log.journal.find(run_id, kind="tool", subtype=name)[0]
    assert entry.payload["error"]["class"] == type(caught.value).__name__
    assert entry.payload["error"]["code"] == caught.value.code
    assert "result" not in entry.payload
    assert_no_canary(log)


@pytest.mark.parametrize("name", [tool.name for tool in TOOLS if tool.changes])
def test_a_tool_that_changes_something_does_it_once_for_a_step(log: Decklog, furnished: Toolbox, run_id: str, name: str) -> None:
    first = furnished.call(name, GOOD[name], step="s1")
    again = furnished.call(name, GOOD[name], step="s1")
    assert type(again) is type(first)
    assert len(log.effects.find(run_id)) == 1
    assert log.journal.find(run_id, kind="tool", subtype=name)[0].payload["already"] is True
    assert_no_canary(log)


def assert_no_canary(log: Decklog) -> None:
    """Search everything that the log holds, entries and rows and blobs."""
    for table in ("entries", "effects", "processes", "blobs"):
        _, rows = log.db.read(lambda table=table: log.db.rows(f"select * from {table}", {}))
        assert CANARY.encode() not in b"".join(_bytes(value) for row in rows for value in row), table


def _bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, (bytes, memoryview)) else str(value).encode()


def test_a_typed_function_becomes_a_tool(make_box: Callable[..., Toolbox]) -> None:
    def add(left: int, right: int = 1) -> int:
        """Add two numbers."""
        return left + right

    box = make_box(tools=[add])
    assert box.call("add", {"left": 2}) == 3
    described = next(one for one in box.schemas() if one["name"] == "add")
    assert described["description"] == "Add two numbers."
    assert described["input_schema"]["properties"]["right"] == {"type": "integer", "default": 1}
    assert described["input_schema"]["required"] == ["left"]


def test_a_function_without_a_docstring_is_no_tool(make_box: Callable[..., Toolbox]) -> None:
    def silent(left: int) -> int:
        return left

    with pytest.raises(TypeError, match="no docstring"):
        make_box(tools=[silent])
