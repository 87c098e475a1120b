"""`decklog review` as a person, an agent and a CI job use it."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Program, Said
from tests.conductor.repositories import git, make_repository, write
from tests.review.changes import ANSWERS, FILES, GOOD, MESSAGE, SETTINGS

# A reviewer that is a program: it finds by its prompt which review it is asked for.
REVIEWER = f"""
import json, sys
told = sys.stdin.read()
titles = {{"# Review the structure": "review.3", "# Find faults": "review.6"}}
print(json.dumps({dict(ANSWERS)!r}[next(site for title, site in titles.items() if title in told)]))
"""
BY_PROGRAM = SETTINGS.replace(
    'provider = "scripted"\nscript = "unused.json"',
    f'agent = "judge"\n[agents.judge]\ncommand = {json.dumps([sys.executable, "-I", "-S", "-c", REVIEWER])}',
)


class Person:
    """Somebody in a repository with a gate, and a log."""

    def __init__(self, decklog: Program, folder: Path, target: str) -> None:
        self._decklog = decklog
        self.folder = folder
        self._settings = {"DECKLOG_DB": target, "XDG_STATE_HOME": str(folder.parent / "state")}

    def call(self, *words: str) -> Said:
        return self._decklog(*words, cwd=self.folder, **self._settings)

    def commit(self, files: dict[str, str], message: str = MESSAGE) -> None:
        git(self.folder, "checkout", "-q", "-B", "change", "main")
        write(self.folder, files)
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", message)


@pytest.fixture
def person(decklog: Program, tmp_path: Path, sqlite_target: str) -> Person:
    folder = make_repository(tmp_path / "repository", {**FILES, "decklog.toml": BY_PROGRAM})
    return Person(decklog, folder, sqlite_target)


@pytest.mark.slow
def test_a_change_is_reviewed_by_checks_and_by_a_program_and_told_again_from_the_record(person: Person, tmp_path: Path) -> None:
    person.commit(GOOD)
    said = person.call("review")
    assert said.code == 0, said
    assert [line.split()[0] for line in said.out.splitlines()[:-1]] == ["1", "2", "4", "5", "3", "6", "7"]
    assert said.out.splitlines()[-1].startswith("pass, confidence 92 of 100: tree ")
    again = person.call("review", "main..change", "--json")
    assert (again.code, again.data["already"], again.data["verdict"]) == (0, True, "pass")
    report = tmp_path / "review.md"
    assert person.call("review", "--format", "markdown", "--out", str(report)).code == 0
    assert report.read_text(encoding="utf-8").startswith("# Review: pass, confidence 92 of 100\n")
    assert person.call("review", "--json", "--out", str(report)).out == ""
    assert json.loads(report.read_text(encoding="utf-8"))["verdict"] == "pass"
    assert person.call("reviews", "find", "--json").data[0]["id"] == again.data["id"]


@pytest.mark.slow
def test_what_the_gate_holds_ends_with_6_and_says_where_and_what_mends_it(person: Person) -> None:
    person.commit({**GOOD, "run.py": "import os\n\n\ndef go(text):\n    os.system(text)\n"})
    said = person.call("review", "--format", "sarif")
    assert said.code == 6
    (run,) = json.loads(said.out)["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("security/ruff:S605", "error")
    assert result["locations"][0]["physicalLocation"] == {"artifactLocation": {"uri": "run.py"}, "region": {"startLine": 5}}
    assert (run["properties"]["verdict"], run["properties"]["confidence"]) == ("block", None)
    told = person.call("review")
    assert told.out.splitlines()[-1].startswith("block: tree ")
    review_id = person.call("review", "--json").data["id"]
    asked = person.call("review", "ask", review_id, "--json").data["approval_id"]
    # What HEAD has is meant where nothing is named; the id alone is data, the rest is talk.
    again = person.call("review", "ask")
    assert (again.out.strip(), f"decklog approvals decide {asked} granted" in again.err) == (asked, True)
    unknown = person.call("review", "ask", "nobody-said-it")
    assert (unknown.code, "none of an answer to feedback nobody-said-it" in unknown.err) == (3, True)
    decided = person.call("approvals", "decide", asked, "granted", "--by", "ana", "--rationale", "It is a demonstration")
    assert decided.code == 0, decided


@pytest.mark.slow
def test_every_stage_is_a_command_of_its_own(person: Person) -> None:
    person.commit({**GOOD, "run.py": "eval(x)\n"}, "fixup! Multiply")
    outcomes: dict[str, Any] = {}
    for name in ("static", "architectural", "security", "prose", "feedback-binding"):
        said = person.call("review", name, "--json")
        outcomes[name] = (said.code, said.data["status"])
    assert outcomes == {
        "static": (0, "pass"),
        "architectural": (0, "pass"),
        "security": (6, "fail"),
        "prose": (6, "fail"),
        "feedback-binding": (0, "skipped"),
    }
    assert person.call("reviews", "find", "--json").data == []


@pytest.mark.slow
def test_wrong_words_say_what_to_do(person: Person) -> None:
    assert person.call("review").code == 5
    assert "do not differ" in person.call("review").err
    assert person.call("review", "nowhere..main").code == 3
    assert person.call("review", "main..change", "--worktree").code == 2
    assert "there are no uncommitted changes" in person.call("review", "--worktree").err
    refused = person.call("review", "--out", "review.txt")
    assert (refused.code, "--format markdown" in refused.err) == (2, True)
    assert "decklog review --worktree" in person.call("review", "--help").out


@pytest.mark.slow
def test_the_workflow_of_the_guide_reviews_a_pull_request_and_fails_what_the_gate_holds(person: Person) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/review-in-ci.md").read_text(encoding="utf-8")
    workflow = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    assert workflow["permissions"] == {"contents": "read"}
    base = git(person.folder, "rev-parse", "main").strip()
    steps = [step["run"] for step in workflow["jobs"]["review"]["steps"] if step.get("run", "").startswith("decklog")]
    commands = [shlex.split(re.sub(r"\$\{\{ github.event.pull_request.base.sha \}\}", base, step))[1:] for step in steps]
    person.commit(GOOD)
    assert [person.call(*words).code for words in commands] == [0, 0, 0]
    assert (person.folder / "review.md").read_text(encoding="utf-8").startswith("# Review: pass")
    person.commit({"calc.py": GOOD["calc.py"] + "\n\ndef run(text):\n    return eval(text)\n"})
    assert [person.call(*words).code for words in commands[1:]] == [6, 6]
    assert (person.folder / "review.md").read_text(encoding="utf-8").startswith("# Review: block")


@pytest.mark.slow
def test_the_terminal_shows_why_a_check_could_not_be_run(decklog: Program, tmp_path: Path, sqlite_target: str) -> None:
    why = "python: can't open file '/opt/hidden/bin/python': Permission denied"
    check = f'[review]\nmodel_passes = []\n[[checks]]\nname = "tests"\ncommand = ["sh", "-c", "echo \\"{why}\\" >&2; exit 1"'
    for more, shown in (
        ("]\n", f"blocking: tests: exit code 1: {why} [check]"),
        (', "{report}"]\nreport = "junit"\n', f"tests gave no result: it ended with exit code 1 and no report of tests: {why}"),
    ):
        folder = make_repository(tmp_path / shown[:5] / "repository", {**FILES, "decklog.toml": check + more})
        person = Person(decklog, folder, sqlite_target)
        person.commit(GOOD)
        said = person.call("review")
        assert shown in said.out, said


@pytest.mark.slow
def test_terminal_shows_the_last_line_of_a_check_that_failed(decklog: Program, tmp_path: Path, sqlite_target: str) -> None:
    script = "grep -q triple calc.py || exit 0; echo 'lint: bad interpreter: Permission denied' >&2; exit 1"
    check = f'[[checks]]\nname = "lint"\ncommand = {json.dumps(["sh", "-c", script])}\nminutes = 0.5\n'
    folder = make_repository(tmp_path / "repository", {**FILES, "decklog.toml": BY_PROGRAM + check})
    person = Person(decklog, folder, sqlite_target)
    person.commit(GOOD)
    said = person.call("review")
    assert said.code == 6
    assert "lint: exit code 1: lint: bad interpreter: Permission denied" in said.out
