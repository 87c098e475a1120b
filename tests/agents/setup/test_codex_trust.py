"""The trust of Codex: written with the user's yes alone, as Codex itself computes it, and taken back without a trace."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.setup.places import Here, Places

CONFIG = '# mine\nmodel = "x"   # and this\n\n[projects."/a"]\ntrust_level = "trusted"'


@pytest.fixture
def config(places: Places) -> Path:
    path = places.home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(CONFIG)
    return path


def trusted(config: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(config.read_text()).get("hooks", {}).get("state", {})
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("codex")
def test_trust_is_written_with_a_yes_alone_and_comes_out_byte_for_byte(config: Path, here: Here) -> None:
    said = here("setup", "codex")
    assert config.read_text() == CONFIG
    assert "/hooks" in said.out
    assert here("setup", "codex", "--check").code == 0
    assert here("setup", "codex", "--check", "--trust").code == 3
    assert here("setup", "codex", "--trust").code == 0
    assert here("setup", "codex", "--check", "--trust").code == 0
    assert config.read_text().startswith(CONFIG)
    assert len(trusted(config)) == 11
    once = config.read_text()
    assert [file["state"] for file in here("setup", "codex", "--trust", "--json").data["files"]] == ["already", "already"]
    assert config.read_text() == once
    assert here("doctor", "agents", "--json").data["programs"][0]["trusted"] == "11 of 11"
    assert here("setup", "codex", "--remove").code == 0
    assert config.read_text() == CONFIG


@pytest.mark.slow
@pytest.mark.usefixtures("codex")
def test_what_codex_wrote_meanwhile_stays(config: Path, here: Here) -> None:
    here("setup", "codex", "--trust")
    config.write_text(config.read_text() + '\n[projects."/b"]\ntrust_level = "trusted"\n')
    here("setup", "codex", "--remove")
    assert tomllib.loads(config.read_text()) == tomllib.loads(CONFIG + '\n[projects."/b"]\ntrust_level = "trusted"\n')
    assert "# mine" in config.read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("codex")
def test_the_users_and_a_projects_hooks_are_trusted_side_by_side(config: Path, here: Here) -> None:
    here("setup", "codex", "--trust")
    users = trusted(config)
    here("setup", "codex", "--project", "--trust")
    assert len(trusted(config)) == 22
    here("setup", "codex", "--project", "--remove")
    assert trusted(config) == users
    here("setup", "codex", "--remove")
    assert config.read_text() == CONFIG


@pytest.mark.slow
@pytest.mark.usefixtures("codex")
def test_a_hook_that_changed_is_trusted_anew(config: Path, places: Places, here: Here) -> None:
    here("setup", "codex", "--trust")
    once = config.read_text()
    hooks = places.home / ".codex" / "hooks.json"
    found = json.loads(hooks.read_text())
    found["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 1
    hooks.write_text(json.dumps(found))
    assert here("setup", "codex", "--check").code == 5
    here("setup", "codex", "--trust")
    assert config.read_text() == once


@pytest.mark.usefixtures("codex")
def test_what_the_user_said_of_a_hook_is_not_overruled(config: Path, places: Places, here: Here) -> None:
    stop = f"{places.home / '.codex' / 'hooks.json'}:stop:0:0"
    config.write_text(f'[hooks.state."{stop}"]\ntrusted_hash = "sha256:of-another"\n')
    before = config.read_text()
    said = here("setup", "codex", "--trust")
    assert "has its own word on" in said.out
    assert config.read_text() == before


@pytest.mark.slow
def test_where_codex_can_not_be_asked_it_is_said_what_to_do_by_hand(
    config: Path, here: Here, program: Callable[..., Path]
) -> None:
    assert "codex is not on the path" in here("setup", "codex", "--trust").out
    program("codex", "raise SystemExit(3)")
    said = here("setup", "codex", "--trust")
    assert "did not list its hooks" in said.out
    assert "/hooks" in said.out
    assert config.read_text() == CONFIG


@pytest.mark.usefixtures("codex")
def test_settings_of_codex_that_are_no_toml_are_left_alone(config: Path, here: Here) -> None:
    for text in ("model = ", '[hooks]\nstate = "x"\n'):
        config.write_text(text)
        here("setup", "codex", "--remove")
        assert config.read_text() == text
