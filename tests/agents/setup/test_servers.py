"""The MCP server in a program's settings: beside what others wrote, once and no more, and out again byte for byte."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from decklog.agents.setup.json_text import parse
from tests.agents.setup.places import Here, Places, tree
from tests.agents.setup.test_commands import WITH_SERVER
from tests.agents.setup.test_examining import CLAUDE

JSON = """{
  // others' own
  "mcpServers": {"theirs": {"command": "x"}},
  "mcp": {"theirs": {"type": "local", "command": ["x"]}}
}"""
TOML = '''# others' own
model = "gpt-5.5"
[mcp_servers.theirs]
command = "x"'''


def entry(path: Path) -> dict[str, object]:
    """Give the entry of our server in a file."""
    text = path.read_text()
    servers = tomllib.loads(text)["mcp_servers"] if path.suffix == ".toml" else None
    value = parse(text).value if servers is None else {}
    found: dict[str, object] = (servers or value.get("mcpServers", {}) | value.get("mcp", {}))["decklog"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("file", WITH_SERVER)
def test_the_server_comes_when_it_is_asked_for_stays_and_goes_with_the_rest(file: str, places: Places, here: Here) -> None:
    words, path, before = WITH_SERVER[file], places.root / file, tree(places.root)
    assert here("setup", *words, "--mcp").code == 0
    found = entry(path)
    called = found["command"]
    spelled = list(called) if isinstance(called, list) else [called, *found["args"]]  # type: ignore[misc]
    assert spelled[-1] == "mcp"
    assert Path(str(spelled[0])).is_absolute()
    after = tree(places.root)
    for more in ((), ("--mcp",)):
        assert here("setup", *words, *more).code == 0
        assert here("setup", *words, *more, "--check").code == 0
    assert tree(places.root) == after
    assert here("setup", *words, "--remove").code == 0
    assert {name: what for name, what in tree(places.root).items() if not name.startswith("data")} == before


@pytest.mark.slow
@pytest.mark.parametrize("file", WITH_SERVER)
def test_what_others_wrote_comes_back_byte_for_byte(file: str, places: Places, here: Here) -> None:
    words, path = WITH_SERVER[file], places.root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    text = TOML if path.suffix == ".toml" else JSON
    path.write_text(text)
    assert here("setup", *words).code == 0
    assert here("setup", *words, "--mcp").code == 0
    assert entry(path)
    assert "others' own" in path.read_text()
    assert here("setup", *words, "--remove").code == 0
    assert path.read_text() == text


@pytest.mark.slow
def test_an_edit_of_somebody_else_stays_when_the_entry_goes(places: Places, here: Here) -> None:
    path = places.repo / ".mcp.json"
    path.write_text('{"mcpServers": {"theirs": {"command": "x"}}}')
    assert here("setup", "claude", "--mcp").code == 0
    path.write_text(path.read_text().replace('"x"', '"y"'))
    assert here("setup", "claude", "--remove").code == 0
    assert json.loads(path.read_text()) == {"mcpServers": {"theirs": {"command": "y"}}}


@pytest.mark.slow
@pytest.mark.parametrize("file", ["repo/.mcp.json", "home/.codex/config.toml"])
def test_a_server_of_the_same_name_that_is_not_ours_is_left_alone(file: str, places: Places, here: Here) -> None:
    words, path = WITH_SERVER[file], places.root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    text = TOML.replace("theirs", "decklog") if path.suffix == ".toml" else JSON.replace("theirs", "decklog")
    path.write_text(text)
    before = tree(places.root)
    said = here("setup", *words, "--mcp")
    assert (said.code, "that is not ours" in said.err) == (5, True)
    assert tree(places.root) == before
    assert here("setup", *words, "--remove").code == 0
    assert path.read_text() == text


def test_the_plugin_has_the_server(places: Places, here: Here) -> None:
    assert here("setup", "claude", "--plugin", "../plugin").code == 0
    path = places.root / "plugin" / "plugins" / "decklog" / ".mcp.json"
    assert entry(path)["args"][-1] == "mcp"  # type: ignore[index]
    assert here("setup", "claude", "--plugin", "../plugin", "--remove").code == 0
    assert not path.exists()


@pytest.mark.slow
def test_the_doctor_asks_the_server_for_its_tools(places: Places, here: Here, program: Callable[..., Path]) -> None:
    program("claude", CLAUDE)
    assert here("init").code == 0
    assert here("setup", "claude", "--mcp").code == 0
    said = here("doctor", "agents", "--json")
    assert said.code == 0, said
    assert said.data["programs"][0]["mcp"] == "15 tools"
