"""What the doctor says of agents' programs, and its proof that events arrive."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.agents.spool import Spool
from tests.agents.setup.places import Here, Places
from tests.waiting import wait_until

CLAUDE = "print('2.1.325 (Claude Code)')"


@pytest.fixture
def claude(program: Callable[..., Path]) -> Path:
    return program("claude", CLAUDE)


@pytest.mark.slow
@pytest.mark.usefixtures("claude")
def test_an_event_goes_into_the_log_and_comes_out_again(places: Places, here: Here) -> None:
    assert here("init").code == 0
    assert here("setup", "claude").code == 0
    said = here("doctor", "agents", "--json")
    assert said.code == 0, said
    row = said.data["programs"][0]
    assert (row["program"], row["version"], row["events_arrive"]) == ("claude", "2.1.325 (Claude Code)", True)
    assert row["set_up"] == "project installed, user missing"
    assert "lets the call run" in row["guard"]
    assert (said.data["waiting"], said.data["dropped"]) == (0, 0)
    wait_until(lambda: Spool(str(places.repo / ".decklog" / "decklog.db-spool")).is_empty)
    assert here("doctor", "agents", DECKLOG_RUN="another").code == 0
    wait_until(lambda: Spool(str(places.repo / ".decklog" / "decklog.db-spool")).is_empty)
    with Decklog.open(places.repo / ".decklog" / "decklog.db") as log:
        assert [run.id for run in log.runs.find()] == ["claude-decklog-doctor"], "one run for all probes"


@pytest.mark.slow
@pytest.mark.usefixtures("claude")
def test_trouble_is_named_with_what_mends_it(places: Places, here: Here) -> None:
    said = here("doctor", "agents", "--json")
    assert (said.code, said.envelope["error"]["hint"]) == (1, "Run `decklog init` to create one here, or name one with --db.")
    here("init")
    here("setup", "claude")
    path = places.repo / ".claude" / "settings.local.json"
    path.write_text(path.read_text().replace('"timeout": 30', '"timeout": 31'))
    said = here("doctor", "agents")
    assert said.code == 1
    assert "decklog setup claude --project" in said.out
    path.write_text("{")
    assert "is no JSON" in here("doctor", "agents").out


@pytest.mark.slow
@pytest.mark.usefixtures("claude")
def test_events_that_found_no_room_are_told(places: Places, here: Here) -> None:
    here("init")
    spool = places.repo / ".decklog" / "decklog.db-spool"
    spool.mkdir()
    (spool / "dropped").write_text('{"at":1,"program":"claude","bytes":7}\n')
    (spool / "claude-s.events").write_text('{"at":1,"program":"claude","session":"s"}\t{"session_id":"s"}\n')
    said = here("doctor", "agents", "--json")
    assert (said.code, said.data["waiting"], said.data["dropped"]) == (1, 1, 1)


@pytest.mark.slow
def test_a_program_that_does_not_answer_and_one_by_its_plugin(places: Places, here: Here, program: Callable[..., Path]) -> None:
    assert "No program of an agent" in here("doctor", "agents", PATH="/nowhere").out
    program("claude", "raise SystemExit(1)")
    settings = places.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"enabledPlugins": {"decklog@decklog": True}}))
    said = here("doctor", "agents", "--json")
    assert said.data["programs"][0]["set_up"] == "project missing, user plugin"
    assert any("does not answer" in finding["what"] for finding in said.data["findings"])


@pytest.mark.slow
@pytest.mark.usefixtures("claude")
def test_setup_and_doctor_try_the_guard_with_a_dangerous_command(places: Places, here: Here) -> None:
    assert here("init").code == 0
    said = here("setup", "claude")
    assert (said.code, "`rm -rf ~` was blocked" in said.out) == (0, True)
    assert here("doctor", "--json").data["guard"] == "claude project: `rm -rf ~` was blocked"
    assert here("doctor", "agents", "--json").data["programs"][0]["guard_tried"] == "project: `rm -rf ~` was blocked"


@pytest.mark.slow
@pytest.mark.usefixtures("claude")
@pytest.mark.parametrize("way", ["the hook lets it through", "the hook is gone", "the parser is missing"])
def test_a_guard_that_does_not_work_is_reported(places: Places, here: Here, way: str) -> None:
    assert here("init").code == 0
    assert here("setup", "claude").code == 0
    more = {}
    settings = places.repo / ".claude" / "settings.local.json"
    if way == "the parser is missing":
        (places.root / "shadow").mkdir()
        (places.root / "shadow" / "tree_sitter.py").write_text("raise ImportError('gone')\n")
        more["PYTHONPATH"] = str(places.root / "shadow")
        said = here("setup", "claude", **more)
        assert (said.code, "THE GUARD DOES NOT WORK" in said.out) == (1, True)
    else:
        hook = places.root / "bin" / "decklog"
        if way == "the hook lets it through":
            hook.write_text("#!/bin/sh\nexit 1\n")
            hook.chmod(0o755)
        written = json.loads(settings.read_text())
        for groups in written["hooks"].values():
            groups[0]["hooks"][0]["command"] = str(hook)
            groups[0]["hooks"][0]["args"] = ["hook", "claude"]
        settings.write_text(json.dumps(written))
    for words in (["doctor"], ["doctor", "agents"]):
        said = here(*words, **more)
        assert (said.code, "the guard of Claude Code does not work" in said.out) == (1, True), said
