"""Every block of code in the README and the documents runs, and answers as the page shows."""

import re
import shlex
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from tests.pictures import history
from tests.plugins.importers.bazinga import bazinga_files
from tests.plugins.importers.beads import beads_files
from tests.plugins.importers.github import github_files
from tests.plugins.importers.hermes import hermes_files
from tests.plugins.importers.langgraph import langgraph_files
from tests.plugins.importers.other_files import build_gaia, build_runstore
from tests.plugins.importers.taskmaster import taskmaster_files
from tests.plugins.importers.vibekanban import vibekanban_files
from tests.project.documents import (
    CONSOLE,
    GENERATED,
    NOT_RUN,
    ROOT,
    WITH_AGENTS,
    Block,
    answers,
    blocks_of,
    pages,
    promised,
    shows,
    steps_of,
    variables,
)
from tests.registry import commands

BLOCKS = [block for page in pages() for block in blocks_of(page) if block.page not in GENERATED]
POSTGRES = "postgresql://you@host/agents"
PROJECT = "/home/you/project"
# The first commands that most people try are run with the installed program; starting it is most of what a page costs.
INSTALLED = {"README.md"}
# Pages that run several fixes or plans.
SLOW = {"docs/how-to/mend.md"}
# Pages for users who have sessions of coding agents in the project.
WITH_SESSIONS = {"README.md"}


def stories() -> list[list[Block]]:
    """Return the console blocks that run in one folder in sequence, with the files saved there."""
    found: list[list[Block]] = []
    for block in BLOCKS:
        if block.page not in WITH_AGENTS and (block.language == CONSOLE or block.file_name):
            if not found or found[-1][-1].page != block.page or block.begins_a_story:
                found.append([])
            found[-1].append(block)
    return found


def daily_calls() -> list[str]:
    """List the commands in the table of what people want to do every day."""
    page = (ROOT / "docs/how-to/run-agents.md").read_text(encoding="utf-8")
    rows = [row for row in page.partition("## What you can do every day")[2].partition("\n## ")[0].splitlines() if row[:1] == "|"]
    return [call for row in rows for call in re.findall(r"`decklog ([^`]+)`", row)]


def test_a_command_for_every_day_can_be_called_as_it_is_written() -> None:
    calls = daily_calls()
    assert len(calls) > 10
    known = {path.removeprefix("decklog "): command for path, command, _ in commands()}
    for call in calls:
        words = shlex.split(call)
        length = max(number for number in range(1, len(words) + 1) if " ".join(words[:number]) in known)
        command = known[" ".join(words[:length])]
        context = click.Context(command, info_name=call)
        _, left, _ = command.make_parser(context).parse_args(words[length:])
        # What a group takes besides its commands is its own, such as the goal of a run.
        assert not left or isinstance(command, click.Group), call


def test_every_block_is_run_or_has_a_reason() -> None:
    left_out = {block.first_line for block in BLOCKS if not block.is_run}
    assert left_out == set(NOT_RUN), "make it a python or console block, or give the reason in tests/project/documents.py"


def name(block: Block) -> str:
    return f"{block.page}:{block.line}"


@pytest.mark.slow
@pytest.mark.parametrize("block", [block for block in BLOCKS if block.is_program], ids=name)
def test_an_example_in_python_prints_what_the_page_says(block: Block, tmp_path: Path) -> None:
    words = [sys.executable, "-W", "error", "-c", block.text]
    done = subprocess.run(words, cwd=tmp_path, env=variables(tmp_path), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    printed, remarks = done.stdout.splitlines(), promised(block)
    assert len(printed) == len(remarks)
    for line, remark in zip(printed, remarks, strict=True):
        assert remark == line or remark.startswith(f"{line}: "), remark


@pytest.fixture(scope="module")
def first_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project folder and a home with the files of older systems, where the pages expect them."""
    place = tmp_path_factory.mktemp("first")
    project, home = place / "project", place / "home"
    for made in (project / "bazinga", project / ".runs", project / ".beads", home / ".gaia"):
        made.mkdir(parents=True)
    bazinga_files.build(project / "bazinga/bazinga.db", 19)
    build_runstore(project / ".runs/state.db")
    build_gaia(home / ".gaia/coder")
    beads_files.write(project / ".beads/issues.jsonl")
    github_files.write(project / "issues.json")
    langgraph_files.build(project / "checkpoints.sqlite")
    hermes_files.build_home(home / ".hermes")
    vibekanban_files.build(home / ".local/share/vibe-kanban/db.v2.sqlite")
    taskmaster_files.write(project / ".taskmaster/tasks/tasks.json")
    return place


@pytest.fixture
def folder(first_folder: Path, tmp_path: Path) -> Path:
    """A project of a page's own."""
    shutil.copytree(first_folder, tmp_path, dirs_exist_ok=True)
    return tmp_path / "project"


@pytest.mark.parametrize(
    "story",
    [pytest.param(story, marks=pytest.mark.slow if story[0].page in SLOW else ()) for story in stories()],
    ids=lambda story: name(story[0]),
)
def test_commands_answer_as_the_page_shows(story: list[Block], folder: Path, request: pytest.FixtureRequest) -> None:
    is_on_a_server = any(POSTGRES in block.text for block in story)
    url = request.getfixturevalue("empty_postgres_url") if is_on_a_server else POSTGRES
    if story[0].page in WITH_SESSIONS:
        history.write(folder.parent / "home", folder, datetime.now(UTC), sessions=5)
    for block in story:
        if block.file_name:
            (folder / block.file_name).write_text(block.text, encoding="utf-8")
            continue
        here = Block(block.page, block.line, block.language, block.text.replace(POSTGRES, f"'{url}'"))
        steps = steps_of(here)
        results = answers(steps, folder, folder.parent / "home", is_forked=block.page not in INSTALLED or block is not story[0])
        for step, (code, output) in zip(steps, results, strict=True):
            assert code == 0, f"{name(block)}: {step.command}\n{output}"
            output = output.replace(str(folder), PROJECT).replace(url, POSTGRES)
            assert not step.shown or shows(step.shown, output), f"{name(block)}: {step.command}\n{output}"


@pytest.mark.parametrize(
    ("shown", "output", "is_so"),
    [
        (("a  b",), "a b\n", True),
        (("2026-11-15 03:55:22  x",), "2027-01-02 11:12:13  x\n", True),
        (('{"id": "lexer", …',), '{"id": "lexer", "more": 1}\n', True),
        (("first", "…", "last"), "first\n1\n2\nlast\n", True),
        (("id task_01ABC",), "id task_01XYZ\n", True),
        (("Whole: 5 entries",), "Whole: 6 entries\n", False),
        (("one line",), "one line\nand another\n", False),
        (("a.b",), "axb\n", False),
    ],
)
def test_output_is_compared_with_placeholders(shown: tuple[str, ...], output: str, is_so: bool) -> None:
    assert shows(shown, output) is is_so
