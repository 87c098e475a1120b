"""Setting programs up: once and no more, beside what others wrote, and back to what was there, byte for byte."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decklog.agents.setup.json_text import parse
from tests.agents.setup.places import Here, Places, tree

# Each way to set something up, with the file that tells whether it is there.
WAYS: dict[str, tuple[str, ...]] = {
    "repo/.claude/settings.local.json": ("claude",),
    "home/.claude/settings.json": ("claude", "--user"),
    "home/.codex/hooks.json": ("codex",),
    "repo/.codex/hooks.json": ("codex", "--project"),
    "home/.gemini/settings.json": ("gemini",),
    "repo/.gemini/settings.json": ("gemini", "--project"),
    "config/opencode/plugins/decklog.js": ("opencode",),
    "repo/.opencode/plugins/decklog.js": ("opencode", "--project"),
    "repo/.cursor/rules/decklog.mdc": ("cursor",),
    "repo/AGENTS.md": ("agents-md",),
    "plugin/plugins/decklog/hooks/hooks.json": ("claude", "--plugin", "../plugin"),
    "config/zed/settings.json": ("zed",),
    "home/.jetbrains/acp.json": ("jetbrains",),
    "config/nvim/lua/decklog_agents.lua": ("neovim",),
}
# Each again with the MCP server, and the file that holds its entry.
WITH_SERVER = {
    "repo/.mcp.json": ("claude",),
    "home/.claude.json": ("claude", "--user"),
    "home/.codex/config.toml": ("codex",),
    "repo/.codex/config.toml": ("codex", "--project"),
    "home/.gemini/settings.json": ("gemini",),
    "repo/.gemini/settings.json": ("gemini", "--project"),
    "config/opencode/opencode.json": ("opencode",),
    "repo/opencode.json": ("opencode", "--project"),
    "repo/.cursor/mcp.json": ("cursor",),
}
JSON_WAYS = {file: words for file, words in WAYS.items() if words[0] in ("claude", "codex", "gemini") and "plugin" not in file}
OTHERS = """{
    // Mine, and it stays.
    "model": "sonnet",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}], "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "/opt/check hook claude"}]},
        ]
    }, /* and so
    does this */
}"""


def handlers(path: Path) -> list[dict[str, Any]]:
    hooks = json.loads(path.read_text())["hooks"]
    return [handler for groups in hooks.values() for group in groups for handler in group["hooks"]]


@pytest.mark.slow
@pytest.mark.parametrize("file", WAYS)
def test_twice_is_once_and_removing_leaves_nothing(file: str, places: Places, here: Here, program: Callable[..., Path]) -> None:
    program("claude-agent-acp", "")
    words, before = WAYS[file], tree(places.root)
    assert here("setup", *words, "--check").code == 3
    first = here("setup", *words, "--json")
    assert first.code == 0, first
    assert first.data["files"][0]["state"] == "written"
    assert (places.root / file).is_file()
    after = tree(places.root)
    assert here("setup", *words, "--check").code == 0
    assert here("setup", *words, "--json").data["files"][0]["state"] == "already"
    assert tree(places.root) == after
    assert here("setup", *words, "--remove").code == 0
    left = {name: what for name, what in tree(places.root).items() if not name.startswith("data")}
    assert left == before
    assert here("setup", *words, "--remove", "--json").data["files"][0]["state"] == "nothing of ours there"


TEXTS = (OTHERS, OTHERS.replace("\n", "\r\n"), "\ufeff" + OTHERS, "{}", "{ }\n", '{"a":1}', "", "\n")


@pytest.mark.slow
@pytest.mark.parametrize("file", JSON_WAYS)
def test_what_others_wrote_stays_and_comes_back_byte_for_byte(file: str, places: Places, here: Here) -> None:
    path = places.root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    for text in TEXTS if "local" in file else TEXTS[:1]:
        path.write_bytes(text.encode())
        path.chmod(0o640)
        assert here("setup", *WAYS[file]).code == 0
        written = path.read_bytes().decode()
        assert written.count("decklog") >= 7
        assert path.stat().st_mode & 0o777 == 0o640
        if text in TEXTS[:3]:
            assert "// Mine, and it stays." in written
            found = parse(written).value
            assert found["model"] == "sonnet"
            assert found["hooks"]["Stop"][0]["hooks"][0]["command"] == "say done"
            assert found["hooks"]["PreToolUse"][0]["hooks"][0]["command"] == "/opt/check hook claude"
        assert here("setup", *WAYS[file], "--remove").code == 0
        assert path.read_bytes() == text.encode()


@pytest.mark.slow
@pytest.mark.parametrize("file", JSON_WAYS)
def test_of_a_file_that_was_edited_since_only_our_entries_go(file: str, places: Places, here: Here) -> None:
    path = places.root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(OTHERS)
    assert here("setup", *WAYS[file]).code == 0
    path.write_text(path.read_text().replace('"sonnet"', '"opus"'))
    assert here("setup", *WAYS[file], "--check").code == 0
    assert here("setup", *WAYS[file], "--remove").code == 0
    left = path.read_text()
    assert left == OTHERS.replace('"sonnet"', '"opus"')
    assert here("setup", *WAYS[file], "--check").code == 3


@pytest.mark.slow
def test_settings_that_a_program_wrote_anew_lose_our_entries_and_nothing_else(places: Places, here: Here) -> None:
    path = places.repo / ".claude" / "settings.local.json"
    assert here("setup", "claude").code == 0
    found = json.loads(path.read_text())
    found["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "mine"})
    path.write_text(json.dumps({"permissions": {"allow": ["Bash(ls)"]}, **found}))
    assert here("setup", "claude", "--remove").code == 0
    own = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}
    assert json.loads(path.read_text()) == {"permissions": {"allow": ["Bash(ls)"]}, **own}


@pytest.mark.slow
def test_an_older_entry_of_ours_is_replaced_and_the_first_text_still_comes_back(places: Places, here: Here) -> None:
    path = places.repo / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text(OTHERS)
    assert here("setup", "claude", "--enforce").code == 0
    assert here("setup", "claude", "--no-enforce", "--check").code == 5
    assert here("setup", "claude", "--no-enforce").code == 0
    found = parse(path.read_text()).value["hooks"]
    all_handlers = [handler for groups in found.values() for group in groups for handler in group["hooks"]]
    # One for each event. The path of the program may contain "decklog" any number of times.
    ours = [one for one in all_handlers if "decklog" in one["command"]]
    assert len(ours) == 14
    assert here("setup", "claude", "--remove").code == 0
    assert path.read_text() == OTHERS


@pytest.mark.slow
def test_every_hook_calls_this_decklog_by_its_whole_path_with_a_time_limit(places: Places, here: Here) -> None:
    for words in JSON_WAYS.values():
        assert here("setup", *words).code == 0
    for file in JSON_WAYS:
        found = handlers(places.root / file)
        assert len(found) >= 6
        for handler in found:
            assert handler["timeout"] > 0
            # A command with arguments of its own is a path, not a line of a shell.
            path = handler["command"] if "args" in handler else shlex.split(handler["command"])[0]
            assert os.access(path, os.X_OK)
    claude = json.loads((places.repo / ".claude" / "settings.local.json").read_text())["hooks"]
    assert {"WorktreeCreate", "MessageDisplay"}.isdisjoint(claude), (
        "the first breaks worktrees, the second costs a process a message"
    )
    assert claude["SessionEnd"][0]["hooks"][0]["timeout"] > 1.5
    codex = json.loads((places.home / ".codex" / "hooks.json").read_text())
    assert list(codex) == ["hooks"], "Codex refuses a file with other names beside it"


@pytest.mark.slow
def test_enforcement_is_asked_for_and_not_taken_back_unasked(places: Places, here: Here) -> None:
    path = places.repo / ".claude" / "settings.local.json"
    said = here("setup", "claude", "--enforce")
    assert "does not know onFailure ignores it" in said.out
    hooks = json.loads(path.read_text())["hooks"]
    assert [event for event in hooks if hooks[event][0]["hooks"][0].get("onFailure") == "block"] == ["PreToolUse"]
    assert here("setup", "claude", "--check").code == 0
    here("setup", "claude")
    assert json.loads(path.read_text())["hooks"] == hooks


@pytest.mark.slow
def test_printing_shows_the_lines_and_writes_nothing(places: Places, here: Here) -> None:
    path = places.repo / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text('{\n  "env": {"TOKEN": "synthetic"},\n  "a": 1,\n  "b": 2\n}\n')
    before = tree(places.root)
    said = here("setup", "claude", "--print")
    assert tree(places.root) == before
    assert '+    "SessionEnd": [' in said.out
    assert "synthetic" not in said.out
    assert here("setup", "claude", "--print", "--json").data[0]["path"] == str(path)


@pytest.mark.slow
@pytest.mark.parametrize("text", ['{"a": 1', "not json", '{"hooks": []}', '{"hooks": {"Stop": "x"}}', "[]"])
@pytest.mark.parametrize("words", [(), ("--remove",)], ids=["put in", "remove"])
def test_malformed_settings_are_left_alone_with_a_clear_message(
    text: str, words: tuple[str, ...], places: Places, here: Here
) -> None:
    path = places.repo / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text(text)
    before = tree(places.root)
    said = here("setup", "claude", *words)
    assert tree(places.root) == before
    if words and text[0] in "{[" and text[-1] in "}]":
        assert said.code == 0, "nothing of ours is there"
    else:
        assert said.code in (1, 5)
        assert str(path) in said.err
        assert "Nothing was changed." in said.err


@pytest.mark.slow
def test_what_can_not_be_changed_is_refused_before_anything_is(places: Places, here: Here) -> None:
    path = places.repo / ".claude" / "settings.local.json"
    path.mkdir(parents=True)
    assert here("setup", "claude").code == 5
    path.rmdir()
    path.parent.rmdir()
    path.parent.write_text("a file where the folder should be")
    assert here("setup", "claude").code == 5
    path.parent.unlink()
    path.parent.mkdir()
    path.write_bytes(b'{"a": "\xff"}')
    said = here("setup", "claude")
    assert (said.code, "is not UTF-8" in said.err) == (1, True)
    path.write_text("{}")
    path.chmod(0o444)
    said = here("setup", "claude")
    assert (said.code, path.read_text()) == (4, "{}")
    assert "read-only" in said.err
    assert here("setup", "claude", "--check").code == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_left_alone(places: Places, here: Here) -> None:
    path = places.repo / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text("{}")
    os.chown(path, 12345, 12345)
    said = here("setup", "claude")
    assert (said.code, path.read_text()) == (4, "{}")
    assert "belongs to another user" in said.err


def test_all_files_are_written_or_none(places: Places, here: Here) -> None:
    (places.repo / "AGENTS.md").write_text("mine\n")
    (places.repo / "CLAUDE.md").write_text("mine too\n")
    (places.repo / "CLAUDE.md").chmod(0o444)
    assert here("setup", "agents-md").code == 4
    assert (places.repo / "AGENTS.md").read_text() == "mine\n"


@pytest.mark.slow
def test_a_link_stays_a_link_and_what_it_leads_to_is_changed(places: Places, here: Here) -> None:
    real = places.root / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}\n")
    link = places.home / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to("../../dotfiles/claude.json")
    before = tree(places.home)
    assert here("setup", "claude", "--user").code == 0
    assert link.is_symlink()
    assert len(handlers(real)) == 14
    assert here("setup", "claude", "--user", "--remove").code == 0
    assert (tree(places.home), real.read_text()) == (before, "{}\n")


@pytest.mark.slow
def test_a_file_of_the_same_name_that_is_not_ours_is_left_alone(places: Places, here: Here) -> None:
    path = places.repo / ".cursor" / "rules" / "decklog.mdc"
    path.parent.mkdir(parents=True)
    path.write_text("my own rule about decklog")
    for words in ((), ("--remove",)):
        assert here("setup", "cursor", *words).code == 5
        assert path.read_text() == "my own rule about decklog"


@pytest.mark.slow
def test_what_a_program_would_not_read_or_be_told_twice_is_said(places: Places, here: Here) -> None:
    path = places.repo / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text("{\n  // mine\n}")
    said = here("setup", "claude", "--json").envelope["warnings"]
    assert any("ignores such a file" in warning for warning in said)
    assert any("decklog init" in warning for warning in said)
    said = here("setup", "claude", "--user", "--json").envelope["warnings"]
    assert any("set up for the project too" in warning for warning in said)


@pytest.mark.slow
def test_which_project_is_meant_must_be_clear(places: Places, here: Here) -> None:
    elsewhere = places.root / "elsewhere"
    elsewhere.mkdir()
    assert here("setup", "claude", cwd=elsewhere).code == 2
    assert here("setup", "claude", "--user", cwd=elsewhere).code == 0
    assert here("setup", "cursor", "--user").code == 1
    for words in (("--user", "--project"), ("--check", "--remove"), ("--enforce", "--plugin", "x")):
        assert here("setup", "claude", *words).code == 2
    deep = places.repo / "src" / "deep"
    deep.mkdir(parents=True)
    assert here("setup", "claude", cwd=deep).code == 0
    assert (places.repo / ".claude" / "settings.local.json").exists()


@pytest.mark.slow
def test_a_programs_own_variable_says_where_its_settings_are(places: Places, here: Here) -> None:
    assert here("setup", "codex", CODEX_HOME=str(places.root / "cx")).code == 0
    assert here("setup", "claude", "--user", CLAUDE_CONFIG_DIR=str(places.root / "cc")).code == 0
    assert (places.root / "cx" / "hooks.json").exists()
    assert (places.root / "cc" / "settings.json").exists()


def test_what_is_kept_to_give_a_file_back_holds_nothing_of_others(places: Places, here: Here) -> None:
    path = places.home / ".claude" / "settings.json"
    path.parent.mkdir()
    secret = "synthetic-" + "token"
    path.write_text(json.dumps({"env": {"TOKEN": secret}}, indent=2))
    assert here("setup", "claude", "--user").code == 0
    kept = list((places.root / "data" / "decklog" / "setup").iterdir())
    assert kept
    for file in kept:
        assert secret not in file.read_text()
        assert file.stat().st_mode & 0o077 == 0


def test_a_program_that_there_is_not_is_said_to_be_none(here: Here) -> None:
    assert here("setup", "emacs").code == 2
    assert here("setup").code == 0
