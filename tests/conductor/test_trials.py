"""`decklog run --check` starts every agent and check once in the sandbox, and names the line to add for what is missing."""

from pathlib import Path

import pytest

from decklog.conductor.readiness import problems
from decklog.guard.sandbox.sandbox import SandboxKind, best_kind
from tests.conductor.repositories import git, make_repository

pytestmark = pytest.mark.skipif(best_kind() is SandboxKind.NONE, reason="no sandbox can be had here")
FINE = '[[checks]]\nname = "fine"\ncommand = ["true"]\n'
AGENT = '[agents.a]\ncommand = ["sh"]\ntrial = ["-c", "true"]\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home, whose programs are installed as version managers do: a script that calls what lies beside it."""
    home = tmp_path / "person"
    for path, text in {
        "shims/tool": f'exec "{home}/.owner/versions/tool" "$@"',
        "versions/tool": "echo tool 1.0",
        "shims/out": "exit 1",
    }.items():
        file = home / ".owner" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/.owner/shims:/usr/bin:/bin")
    return home


def checked(home: Path, settings: str) -> list[str]:
    folder = home.parent / "repository"
    if not folder.exists():
        make_repository(folder, {"a.txt": "a\n"})
    (folder / "decklog.toml").write_text(settings)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Settings")
    return problems(folder, "HEAD")


def test_what_starts_in_the_sandbox_is_no_problem(home: Path) -> None:
    assert checked(home, AGENT + FINE) == []


@pytest.mark.slow
def test_an_agent_whose_program_the_sandbox_hides_comes_with_the_line_to_add(home: Path) -> None:
    agent = '[agents.a]\ncommand = ["tool"]\n'
    (found,) = checked(home, agent + FINE)
    assert found.startswith("agent a does not start in the sandbox: exit code 12"), found
    line = 'readable = ["~/.owner"]'
    assert found.endswith(f"Add to [agents.a]: {line}"), found
    assert checked(home, f"{agent}{line}\n{FINE}") == [], "the line is what was missing"


def test_an_agent_that_only_a_plan_may_name_is_started_too(home: Path) -> None:
    other = '[agents.b]\ncommand = ["sh"]\ntrial = ["-c", "exit 3"]\n'
    (found,) = checked(home, AGENT + other + FINE)
    assert found.startswith("agent b does not start in the sandbox: exit code 3"), found


@pytest.mark.slow
def test_a_check_whose_program_the_sandbox_hides_comes_with_the_line_to_add(home: Path) -> None:
    check = '[[checks]]\nname = "t"\ncommand = ["tool"]\n'
    (found,) = checked(home, AGENT + check)
    line = 'readable = ["~/.owner"]'
    assert found.startswith("check t does not pass on "), found
    assert found.endswith(f"Add to [[checks]] t: {line}"), found
    assert checked(home, f"{AGENT}{check}{line}\n") == [], "the line is what was missing"


def test_a_check_that_needs_the_network_comes_with_the_line_to_add(home: Path) -> None:
    code = "import socket; socket.getaddrinfo('localhost.invalid', 80)"
    (found,) = checked(home, f'{AGENT}[[checks]]\nname = "t"\ncommand = ["python3", "-c", "{code}"]\n')
    assert found.endswith("Add to [[checks]] t: network = true"), found


def test_an_agent_without_its_login_is_named(home: Path) -> None:
    agent = f'{AGENT}probe = ["out", "auth", "status"]\npass_env = ["TOOL_KEY"]\n'
    (found,) = checked(home, agent + FINE)
    assert found.startswith("agent a is not logged in, by 'out auth status': exit code 1"), found
    assert "or set TOOL_KEY" in found


@pytest.mark.slow
def test_an_agent_with_its_key_in_a_variable_needs_no_other_login(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = f'{AGENT}probe = ["out", "auth", "status"]\npass_env = ["OTHER", "TOOL_KEY"]\nlogin_env = ["TOOL_KEY"]\n'
    (found,) = checked(home, agent + FINE)
    assert "or set TOOL_KEY" in found
    monkeypatch.setenv("TOOL_KEY", "x")
    assert checked(home, agent + FINE + "# The same\n") == []


def test_a_check_that_is_red_on_the_first_commit_is_named(home: Path) -> None:
    (found,) = checked(home, AGENT + '[[checks]]\nname = "t"\ncommand = ["sh", "-c", "echo it is red; exit 3"]\n')
    assert "exit code 3: it is red" in found
