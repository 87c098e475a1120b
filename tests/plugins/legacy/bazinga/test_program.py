"""The program around the commands: global flags, streams, exit codes, and where the database is."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.cli import run
from decklog.plugins.legacy.bazinga.program import COMMANDS
from decklog.plugins.legacy.bazinga.usage import CommandUsage
from tests.db.processes import unmeasured
from tests.every import every
from tests.plugins.legacy.bazinga.shell import Shell, python

# As bazinga-db's own documents count them; get-logs is ours, and the others were programs beside it.
THEIRS = (
    *("create-session", "get-session", "list-sessions", "update-session-status", "update-session", "complete-session"),
    *("save-state", "get-state", "dashboard-snapshot", "log-interaction", "stream-logs", "save-reasoning"),
    *("get-reasoning", "reasoning-timeline", "check-mandatory-phases", "save-event", "get-events"),
    *("save-investigation-iteration",),
    *("create-task-group", "update-task-group", "get-task-groups", "save-development-plan", "get-development-plan"),
    *("update-plan-progress", "save-success-criteria", "get-success-criteria", "update-success-criterion"),
    *("log-tokens", "token-summary", "save-skill-output", "get-skill-output", "get-skill-output-all", "check-skill-evidence"),
    *("save-context-package", "get-context-packages", "mark-context-consumed", "update-context-references"),
    *("save-consumption", "get-consumption", "save-error-pattern", "get-error-patterns", "update-error-confidence"),
    *("cleanup-error-patterns", "save-strategy", "get-strategies", "update-strategy-helpfulness", "extract-strategies"),
    *("query", "integrity-check", "recover-db", "diagnose-group-ids", "detect-paths", "help"),
)


def test_all_fifty_three_commands_are_there() -> None:
    assert len(THEIRS) == 53
    assert set(THEIRS) <= set(COMMANDS)
    assert set(COMMANDS) - set(THEIRS) == {"get-logs", "route", "auto-logger", "init-db", "init-session", "seed-configs"}


@every("name", [name for name in COMMANDS if name != "query"])
def test_a_flag_that_a_command_does_not_know_is_refused(project: Callable[[], Shell], name: str) -> None:
    answer = project().call(name, "--no-such-flag")
    assert (answer.code, answer.out) == (1, "")
    assert "Unknown flag: --no-such-flag" in answer.err


REQUIRED = {name: required for name, command in COMMANDS.items() if (required := CommandUsage(command.usage).required)}


@every("name", REQUIRED)
def test_a_call_without_its_last_required_word_is_refused(project: Callable[[], Shell], name: str) -> None:
    *words, missing = REQUIRED[name]
    answer = project().call(name, *words)
    assert (answer.code, answer.out) == (1, "")
    assert f"Missing argument: {missing.upper()}" in answer.err


@every(
    ("words", "because"),
    [
        (("get-session", "s", "more"), "Unexpected argument"),
        (("list-sessions", "x"), "limit must be an integer"),
        (("update-task-group", "A", "s", "--status"), "requires a value"),
        (("update-task-group", "A", "s", "status"), "requires a value"),
        (("save-event", "s", "x", "{}", "--idempotency-key", "--group-id", "A"), "requires a value"),
        (("get-logs", "s", "--limit", "x"), "limit must be an integer"),
    ],
)
def test_a_wrong_word_is_refused(project: Callable[[], Shell], words: tuple[str, ...], because: str) -> None:
    answer = project().call(*words)
    assert (answer.code, answer.out) == (1, "")
    assert because in answer.err


@every("name", COMMANDS)
def test_help_shows_a_command_with_its_usage(empty: Shell, name: str) -> None:
    assert f"  {name} " in empty.run("help").out + " " or f"  {name}\n" in empty.run("help").out
    assert name in empty.run("help", name).out


@every(
    "arguments",
    [(), ("--quiet",), ("--no-such", "help"), ("--db",), ("--db", "x.db"), ("--quiet=1", "help"), ("-x", "help")],
    ids=lambda arguments: " ".join(arguments) or "nothing",
)
def test_a_wrong_start_is_a_usage_error(empty: Shell, arguments: tuple[str, ...]) -> None:
    answer = empty.run(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("usage: bazinga-db")


def test_an_unknown_command_is_refused(shell: Shell) -> None:
    answer = shell.call("make-coffee")
    assert (answer.code, answer.out) == (1, "")
    assert "Unknown command: make-coffee" in answer.err


def test_without_quiet_a_sentence_comes_before_the_json(shell: Shell) -> None:
    said, _, rest = shell.call("save-state", "s", "pm", "{}", quiet=False).out.partition("\n")
    assert said == "\u2713 Saved pm state"
    assert json.loads(rest)["success"] is True


def test_json_is_indented_by_two_and_escaped(shell: Shell) -> None:
    shell.ok("save-state", "s", "pm", '{"a": "ä"}')
    assert shell.call("get-state", "s", "pm").out == '{\n  "a": "\\u00e4"\n}\n'


EXAMPLES = {
    "update-session-status": ("s", "completed"),
    "update-session": ("s", "--status", "completed"),
    "complete-session": ("s",),
    "log-tokens": ("s", "developer", "5"),
    "save-skill-output": ("s", "lint", "{}"),
    "save-development-plan": ("s", "p", "t", "[]", "0", "0"),
    "update-plan-progress": ("s", "1", "completed"),
    "save-success-criteria": ("s", '[{"criterion": "x"}]'),
    "update-success-criterion": ("s", "Tests pass", "--status", "met"),
    "mark-context-consumed": ("1", "developer"),
    "update-context-references": ("A", "s", "[1]"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_eleven_commands_are_silent_when_quiet_and_speak_otherwise(shell: Shell, name: str) -> None:
    assert shell.call(name, *EXAMPLES[name]).out == ""
    assert shell.call(name, *EXAMPLES[name], quiet=False).out != ""


def test_global_flags_have_both_forms(shell: Shell) -> None:
    for arguments in (
        ("--db", shell.db),
        (f"--db={shell.db}",),
        ("--project-root", str(shell.root)),
        (f"--project_root={shell.root}",),
    ):
        assert shell.run("--quiet", *arguments, "get-session", "s").code == 0


def test_a_global_flag_after_the_command_is_the_commands(shell: Shell) -> None:
    assert shell.call("get-session", "s", "--quiet").code == 1


def test_a_database_named_first_wins(shell: Shell, tmp_path: Path) -> None:
    other = str(tmp_path / "other.db")
    assert shell.run("--db", other, "--project-root", str(shell.root), "get-session", "s").code == 1
    assert os.path.exists(other)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that belongs to no project."""
    folder = tmp_path / "outside"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("BAZINGA_ROOT", raising=False)
    return folder


def test_the_project_is_found_upwards(shell: Shell, outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.root / "bazinga" / "artifacts")
    refused = shell.run("--quiet", "list-sessions")
    assert (refused.code, f"decklog accept {shell.root}" in refused.err) == (1, True)
    assert run(["accept", str(shell.root)]) == 0
    assert shell.run("--quiet", "get-session", "s").code == 0
    assert shell.run("detect-paths").json["detection_source"] == "current working directory"


def test_the_project_is_found_by_the_environment(shell: Shell, outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAZINGA_ROOT", str(shell.root))
    assert shell.run("--quiet", "get-session", "s").code == 0
    found = shell.run("detect-paths").json
    assert found == {
        "project_root": str(shell.root),
        "detection_source": "BAZINGA_ROOT environment variable",
        "db_path": shell.db,
        "skills_dir": str(shell.root / ".claude/skills"),
        "artifacts_dir": str(shell.root / "bazinga/artifacts"),
        "agents_dir": str(shell.root / "agents"),
        "cwd": str(outside),
        "env_var_set": True,
    }


def test_outside_of_a_project_the_log_of_a_folder_above_is_meant(outside: Path) -> None:
    assert run(["init"]) == 0
    (outside / "deep").mkdir()
    os.chdir(outside / "deep")
    Shell(outside).run("create-session", "s9", "simple", "Try it")
    with Decklog.open(outside / ".decklog/decklog.db") as log:
        assert log.runs.get("s9").goal == "Try it"


def test_an_environment_that_names_no_project_is_ignored(shell: Shell, outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAZINGA_ROOT", str(outside))
    monkeypatch.chdir(shell.root)
    assert run(["accept"]) == 0
    assert shell.run("--quiet", "get-session", "s").code == 0


def test_the_project_is_found_by_the_paths_file(shell: Shell, outside: Path) -> None:
    (outside / ".bazinga").mkdir()
    (outside / ".bazinga/paths.env").write_text(f"# paths\nexport BAZINGA_ROOT='{shell.root}'\n")
    assert "was not created by you" in shell.run("--quiet", "list-sessions").err
    assert run(["accept", str(shell.root)]) == 0
    assert shell.run("--quiet", "get-session", "s").code == 0
    assert shell.run("detect-paths").json["detection_source"] == ".bazinga/paths.env file"


def test_without_a_project_there_is_a_hint(shell: Shell, outside: Path) -> None:
    answer = shell.run("get-session", "s")
    assert answer.code == 1
    assert "--project-root" in answer.err
    missing = shell.run("detect-paths")
    assert (missing.code, list(missing.json)) == (0, ["error", "cwd", "env_var_set"])


def test_a_verbose_call_says_where_it_looked(shell: Shell, outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAZINGA_ROOT", str(shell.root))
    monkeypatch.setenv("BAZINGA_VERBOSE", "1")
    assert "project root" in shell.run("--quiet", "list-sessions").err


def test_a_file_that_is_no_database_is_refused_and_left(empty: Shell) -> None:
    Path(empty.db).write_text("hello")
    assert empty.call("list-sessions").code == 1
    assert Path(empty.db).read_text() == "hello"


# In processes of their own, as agents call it


def _process(shell: Shell, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(python("--db", shell.db, "--quiet", *words), capture_output=True, text=True, check=False)


PROCESSES = [
    (("log-interaction", "s", "developer", "hi"), 0),
    (("check-mandatory-phases", "s", "A", "developer"), 1),
    (("get-session", "nope"), 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "code"), PROCESSES, ids=[" ".join(words) for words, _ in PROCESSES])
def test_a_process_answers_as_the_function_does(shell: Shell, words: tuple[str, ...], code: int) -> None:
    done = _process(shell, *words)
    assert done.returncode == code
    assert (json.loads(done.stdout) if done.stdout else json.loads(done.stderr)) is not None
    assert "Traceback" not in done.stderr


def test_a_call_imports_no_more_than_it_needs(shell: Shell) -> None:
    code = (
        "import sys; from decklog.cli import run; "
        f"run(['bazinga', '--db', {shell.db!r}, '--quiet', 'log-interaction', 's', 'a', 'b']); "
        "print(sorted({'click', 'psycopg', 'asyncio', 'subprocess', 'argparse', 'socket'} & set(sys.modules)), file=sys.stderr)"
    )
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=unmeasured())
    assert done.stderr == "[]\n"


def test_a_reader_that_goes_away_is_no_error(shell: Shell) -> None:
    call = subprocess.Popen(python("--db", shell.db, "stream-logs", "s"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert call.stdout is not None
    assert call.stderr is not None
    call.stdout.close()
    assert b"Traceback" not in call.stderr.read()
    call.stderr.close()
    call.wait()


def test_the_same_command_line_is_in_decklogs_menu(shell: Shell) -> None:
    from decklog.cli import run

    assert run(["--db", shell.db, "bazinga", "--quiet", "get-session", "s"]) == 0
