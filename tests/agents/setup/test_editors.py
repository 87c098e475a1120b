"""Editors that start agents by `decklog acp`: entries beside those of others, and back to what was there, byte for byte."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from decklog.agents.setup.json_text import parse
from tests.agents.setup.places import Here, Places

FILES = {
    "zed": "config/zed/settings.json",
    "jetbrains": "home/.jetbrains/acp.json",
    "neovim": "config/nvim/lua/decklog_agents.lua",
}
JSON = {name: file for name, file in FILES.items() if file.endswith(".json")}
OTHERS = """{
  // Mine, and it stays.
  "theme": "dark",
  "agent_servers": {
    "Mine": {"type": "custom", "command": "/opt/mine", "args": ["acp"]}, // so does this
  }
}"""


@pytest.fixture(autouse=True)
def claude(program: Callable[..., Path]) -> Path:
    return program("claude-agent-acp", "")


@pytest.mark.slow
@pytest.mark.parametrize("editor", JSON)
def test_entries_of_others_and_comments_stay(editor: str, places: Places, here: Here, claude: Path) -> None:
    path = places.root / FILES[editor]
    path.parent.mkdir(parents=True)
    path.write_text(OTHERS)
    assert here("setup", editor).code == 0
    text = path.read_text()
    assert "// Mine, and it stays." in text
    assert "// so does this" in text
    servers = parse(text).value["agent_servers"]
    assert [*servers] == ["Mine", "Claude Code (recorded)"]
    entry = servers["Claude Code (recorded)"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-3:] == ["acp", "--", str(claude)]
    assert ("type" in entry) == (editor == "zed")
    path.write_text(text.replace("dark", "light"))
    assert here("setup", editor, "--remove").code == 0
    assert path.read_text().replace("light", "dark") == OTHERS


@pytest.mark.slow
def test_agents_are_those_on_the_path_or_those_that_are_named(places: Places, here: Here, program: Callable[..., Path]) -> None:
    path = places.root / FILES["jetbrains"]
    program("opencode", "")
    assert here("setup", "jetbrains").code == 0
    assert [*json.loads(path.read_text())["agent_servers"]] == ["Claude Code (recorded)", "opencode (recorded)"]
    # Another wish takes the place of the one before.
    assert here("setup", "jetbrains", "--agent", "opencode", "--enforce").code == 0
    servers = json.loads(path.read_text())["agent_servers"]
    assert [*servers] == ["opencode (recorded)"]
    assert servers["opencode (recorded)"]["args"][-4:-2] == ["--enforce", "--"]
    missing = here("setup", "jetbrains", "--agent", "codex")
    assert missing.code == 3
    assert "codex-acp is not on the path" in missing.err


def test_without_any_agent_nothing_is_written(places: Places, here: Here, claude: Path) -> None:
    claude.unlink()
    said = here("setup", "zed")
    assert said.code == 3
    assert "npm install" in said.err
    assert not (places.root / FILES["zed"]).exists()


def test_what_can_not_be_read_is_left_alone(places: Places, here: Here) -> None:
    path = places.root / FILES["zed"]
    path.parent.mkdir(parents=True)
    for text in ("{", '{"agent_servers": []}'):
        path.write_text(text)
        assert here("setup", "zed").code != 0
        assert path.read_text() == text


def test_the_module_for_neovim_names_the_words_and_how_to_use_it(places: Places, here: Here, claude: Path) -> None:
    said = here("setup", "neovim")
    assert 'require("decklog_agents")' in said.out
    text = (places.root / FILES["neovim"]).read_text()
    assert f'"acp", "--", "{claude}" }},' in text
