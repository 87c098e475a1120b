"""What was set up holds agents, so agents may not take it out."""

from pathlib import Path

import pytest

from decklog.guard.policy import Decision, judge

FILES = (
    ".claude/settings.local.json",
    "~/.claude/settings.json",
    ".codex/hooks.json",
    "~/.codex/hooks.json",
    "~/.codex/config.toml",
    ".gemini/settings.json",
    "~/.gemini/settings.json",
    ".opencode/plugins/decklog.js",
    "~/.config/opencode/plugins/decklog.js",
)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("command", ["rm {}", "echo '{{}}' > {}", "mv {} /tmp/x", "sed -i s/hook/x/ {}", "cp /tmp/x {}"])
def test_an_agent_does_not_change_the_files_that_hold_our_hooks(file: str, command: str, tmp_path: Path) -> None:
    assert judge(command.format(file), root=str(tmp_path)).decision is not Decision.ALLOW


@pytest.mark.parametrize("file", [".codex/hooks.json", ".gemini/settings.json", ".opencode/plugins/decklog.js"])
def test_an_agent_may_look_at_what_a_project_has(file: str, tmp_path: Path) -> None:
    assert judge(f"cat {file}", root=str(tmp_path)).decision is Decision.ALLOW


@pytest.mark.parametrize("words", ["setup claude --remove", "setup codex --trust", "setup claude --no-enforce"])
def test_setting_up_is_the_owners(words: str, tmp_path: Path) -> None:
    assert judge(f"decklog {words}", root=str(tmp_path)).decision is Decision.DENY
