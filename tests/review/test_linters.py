"""Linters: which run, on which configuration, what of their reports counts, and what happens when they fail."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from decklog.core.errors import Invalid
from decklog.guard.sandbox.sandbox import SandboxKind, best_kind
from decklog.review.change import Change
from decklog.review.linters import (
    LinterReport,
    Linters,
    LinterTool,
    Result,
    UnreadableReport,
    build_tool,
    load_tools,
    read_report,
)
from decklog.review.result import Severity, StageResult
from decklog.review.settings import ReviewSettings, Rules, read
from tests.conductor.repositories import git
from tests.every import every
from tests.review.changes import GOOD, SETTINGS, Desk, statuses

WITHOUT_MODELS = SETTINGS.replace('base = "main"', 'base = "main"\nmodel_passes = []')
# Reports each line with the word "bad", at the level that its configuration names.
FAKE = """
import json, pathlib, sys
report, *paths = sys.argv[1:]
config = pathlib.Path("fake.cfg")
level = config.read_text().strip() if config.exists() else "error"
results = [
    {"ruleId": "B1", "level": level, "message": {"text": "bad"}, "locations": [{"physicalLocation": {
        "artifactLocation": {"uri": pathlib.Path(path).absolute().as_uri()}, "region": {"startLine": number}}}]}
    for path in paths for number, line in enumerate(open(path), 1) if "bad" in line
]
pathlib.Path(report).write_text(json.dumps({"runs": [{"tool": {"driver": {"name": "fake"}}, "results": results}]}))
"""
ROW: dict[str, Any] = {
    "name": "fake",
    "stage": 4,
    "program": "fake-linter",
    "files": ["*.txt"],
    "config": ["fake.cfg"],
    "command": ["{program}", "{report}", "{changed}"],
    "exit_codes": [0],
    "format": "sarif",
    "severity": {"error": "blocking", "note": "info"},
}


@contextmanager
def installed(desk: Desk, program: str) -> Iterator[None]:
    """Put a linter of some Python text on PATH."""
    folder = desk.folder.parent / "programs" / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fake-linter.py").write_text(program, encoding="utf-8")
    (folder / "fake-linter").write_text(
        f"#!/bin/sh\nexec '{os.path.realpath(sys.executable)}' -IS '{folder}/fake-linter.py' \"$@\"\n", encoding="utf-8"
    )
    (folder / "fake-linter").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        yield


def run(desk: Desk, change: Change, tool: LinterTool | None = None, rules: Rules | None = None) -> LinterReport:
    settings = ReviewSettings(digest="d", rules=rules or Rules())
    gate = desk.gate(change)
    return Linters(gate.runner, change, settings, gate.run_id, [tool or build_tool(ROW)]).run(4)


def stage(desk: Desk, change: Change, number: int) -> StageResult:
    return desk.gate(change).run_stage(number)


def test_findings_count_on_changed_lines_alone(desk: Desk) -> None:
    desk.commit_to_base({"a.txt": "bad\ngood\n"})
    with installed(desk, FAKE):
        found = run(desk, desk.commit({"a.txt": "bad\ngood\nbad too\n", "b.txt": "fine\n"}))
    assert [(one.file, one.line, one.kind, one.severity) for one in found.findings] == [
        ("a.txt", 3, "fake-linter:B1", Severity.BLOCKING)
    ]
    assert (found.ran, found.missing, found.unproven) == (("fake",), (), ())


@pytest.mark.slow
def test_with_compare_findings_count_that_the_base_does_not_have(desk: Desk) -> None:
    desk.commit_to_base({"a.txt": "bad\ngood\n"})
    with installed(desk, FAKE):
        found = run(desk, desk.commit({"a.txt": "more\nbad\ngood\nbad\n"}), build_tool({**ROW, "compare": True}))
    assert [one.line for one in found.findings] == [4]


@pytest.mark.slow
@every("branch", [{"fake.cfg": "note\n"}, {"fake.cfg": None}, {"sub/fake.cfg": "note\n"}])
def test_a_change_does_not_configure_the_linter_it_is_judged_by(desk: Desk, branch: dict[str, str | None]) -> None:
    desk.commit_to_base({"fake.cfg": "error \n"})
    with installed(desk, FAKE):
        found = run(desk, desk.commit({"a.txt": "bad\n", **branch}))
    assert [one.severity for one in found.findings] == [Severity.BLOCKING]


def test_configuration_that_a_change_adds_is_removed_for_the_run(desk: Desk) -> None:
    with installed(desk, FAKE):
        found = run(desk, desk.commit({"a.txt": "bad\n", "fake.cfg": "note\n"}))
    assert [one.severity for one in found.findings] == [Severity.BLOCKING]


@pytest.mark.slow
@every(
    ("program", "why"),
    [
        ("import sys\nsys.exit(3)\n", "exit code 3"),
        ("import os\nos.kill(os.getpid(), 11)\n", "could not run"),
        ("import sys\nopen(sys.argv[1], 'w').write('{')\n", "can't be read"),
        ("import sys\nopen(sys.argv[1], 'w').write('{}')\n", "can't be read"),
        ("pass\n", "wrote no report"),
        (
            FAKE + 'pathlib.Path(report).write_text(\'{"runs": [{"tool": {"driver": {}}, "results": [],'
            ' "invocations": [{"executionSuccessful": false}]}]}\')\n',
            "reports a failed run",
        ),
    ],
    ids=["exit code", "crash", "half a report", "another form", "no report", "says that it failed"],
)
def test_a_linter_that_fails_leaves_the_stage_unproven(desk: Desk, program: str, why: str) -> None:
    with installed(desk, program):
        found = run(desk, desk.commit({"a.txt": "bad\n"}))
    assert (found.findings, found.ran) == ((), ())
    assert why in found.unproven[0], found.unproven


@pytest.mark.slow
def test_a_linter_that_runs_out_of_time_leaves_the_stage_unproven(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decklog.review.linters.MINUTES", 0.005)
    with installed(desk, "import time\ntime.sleep(60)\n"):
        found = run(desk, desk.commit({"a.txt": "bad\n"}))
    assert "timed out" in found.unproven[0]


def test_a_missing_linter_is_named_and_one_that_the_settings_ask_for_is_unproven(desk: Desk) -> None:
    change = desk.commit({"a.txt": "bad\n"})
    silent, expected = build_tool(ROW), build_tool({**ROW, "expected": ["*.txt"]})
    assert run(desk, change, silent) == LinterReport()
    lack = "fake is not installed: install fake-linter, or set tools in [review]"
    assert run(desk, change, expected).missing == (lack,)
    assert run(desk, change, build_tool({**ROW, "required": True})).unproven == (lack,)
    assert run(desk, change, silent, Rules(tools=("fake",))).unproven == (lack,)
    assert run(desk, change, expected, Rules(tools=())) == LinterReport()
    desk.commit_to_base({"fake.cfg": "error\n"})
    assert run(desk, desk.commit({"a.txt": "bad\n"}), silent).missing == (lack,)


@pytest.mark.slow
def test_a_review_without_a_linter_for_python_is_unproven_and_names_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.settle(WITHOUT_MODELS)
    monkeypatch.setattr("decklog.review.linters.find_program", lambda _: None)
    review = desk.review(desk.commit(GOOD))
    assert (review.verdict, statuses(review)) == ("unproven", "pppupss")
    assert any("ruff-security is not installed" in str(reason) for reason in review.reasons)
    git(desk.folder, "checkout", "-q", "main")
    desk.settle(WITHOUT_MODELS.replace('base = "main"', 'base = "main"\ntools = []'))
    assert desk.review(desk.commit(GOOD)).verdict == "pass", "the settings do without linters"


def test_a_stage_that_passes_says_which_linter_did_not_run(desk: Desk) -> None:
    found = stage(desk, desk.commit({"a.js": "export const a = 1;\n"}), 4)
    assert (found.status, found.why.startswith("semgrep is not ")) == ("pass", True)


def test_bandit_takes_the_place_of_ruff(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [build_tool({**ROW, "required": True, "program": "gone"}), build_tool({**ROW, "name": "other", "unless": "fake"})]
    monkeypatch.setattr("decklog.review.linters.load_tools", lambda: tools)
    with installed(desk, FAKE):
        found = stage(desk, desk.commit({"a.txt": "bad\n"}), 4)
    assert ([one.kind for one in found.findings if one.file], found.why) == (["fake-linter:B1"], "")


def test_in_the_sandbox_a_linter_can_not_write_outside(desk: Desk, tmp_path: Path) -> None:
    if best_kind() is SandboxKind.NONE:
        pytest.skip("no sandbox works here: see docs/security.md, #sandbox")
    target = tmp_path / "escaped"
    desk.settle(SETTINGS.replace('sandbox = "none"', 'sandbox = "auto"'))
    with installed(desk, f"try:\n    open({str(target)!r}, 'w')\nexcept OSError:\n    pass\n{FAKE}"):
        found = run(desk, desk.commit({"a.txt": "bad\n"}))
    assert ([one.kind for one in found.findings], found.unproven) == (["fake-linter:B1"], ())
    assert not target.exists()


# Shipped tools


@pytest.mark.slow
def test_ruff_finds_dangerous_calls_and_inline_comments_do_not_silence_it(desk: Desk) -> None:
    found = stage(desk, desk.commit({"run.py": "import os\n\n\ndef go(text):\n    os.system(text)  # noqa: S605\n"}), 4)
    assert (found.status, [(one.kind, one.file, one.line) for one in found.findings if one.file]) == (
        "fail",
        [("ruff:S605", "run.py", 5)],
    )
    in_test = stage(desk, desk.commit({"tests/test_go.py": "import os\n\n\ndef test_go():\n    os.system('ls ' + NAME)\n"}), 4)
    assert (in_test.status, {one.severity for one in in_test.findings if one.file}) == ("pass", {Severity.MINOR})


def test_ruff_uses_the_configuration_of_the_base(desk: Desk) -> None:
    desk.commit_to_base({"ruff.toml": 'lint.select = ["F401"]\n'})
    loosened = {"a.py": "import os\n", "ruff.toml": "lint.select = []\n"}
    found = stage(desk, desk.commit(loosened), 1)
    assert ("ruff:F401", "a.py", 1) in [(one.kind, one.file, one.line) for one in found.findings]
    assert found.status == "fail"


@pytest.mark.slow
def test_mypy_reports_what_is_new_in_unchanged_lines_too(desk: Desk) -> None:
    code = (
        "def size(text: str) -> int:\n    return len(text)\n\n\ndef old() -> int:\n    return 'x'\n\n\nTOTAL: int = size('a')\n"
    )
    desk.commit_to_base({"mypy.ini": "[mypy]\nstrict = true\n", "sizes.py": code})
    changed = code.replace("def size(text: str) -> int:\n    return len(text)", "def size(text: str) -> str:\n    return text")
    found = stage(desk, desk.commit({"sizes.py": changed}), 1)
    assert [(one.kind, one.line) for one in found.findings if one.kind.startswith("mypy")] == [("mypy:assignment", 9)], found


@pytest.mark.slow
def test_mypy_checks_the_files_that_its_configuration_names(desk: Desk) -> None:
    wrong = "TOTAL: int = 'x'\n"
    desk.commit_to_base({"pyproject.toml": '[tool.hatch]\npackages = ["b"]\n[tool.mypy]\nfiles = ["src"]\n', "src/a.py": ""})
    found = stage(desk, desk.commit({"src/a.py": wrong, "other.py": wrong}), 1)
    assert [one.file for one in found.findings if one.kind.startswith("mypy")] == ["src/a.py"], found
    desk.commit_to_base({"src/b.py": wrong})
    found = stage(desk, desk.commit({"src/c.py": "TOTAL: int = 1\n"}), 1)
    assert [one.file for one in found.findings if one.kind.startswith("mypy")] == [], "the fault is not of this change"


def test_settings_name_the_linters() -> None:
    assert read(b'[review]\ntools = ["ruff"]\n').rules.tools == ("ruff",)
    with pytest.raises(Invalid, match="tools has to be a list"):
        read(b'[review]\ntools = "ruff"\n')
    names = [tool.name for tool in load_tools()]
    assert len(set(names)) == len(names)
    assert {tool.unless for tool in load_tools()} - {""} <= set(names)


# Reports

_ESLINT = [
    {"filePath": "/r/a.js", "messages": [{"ruleId": "no-eval", "severity": 2, "message": "eval", "line": 3}], "errorCount": 1}
]
_BANDIT = {
    "errors": [],
    "results": [
        {
            "filename": "./a.py",
            "test_id": "B307",
            "issue_severity": "MEDIUM",
            "issue_text": "eval",
            "line_number": 3,
            "line_range": [3],
        }
    ],
}
_MYPY = {"file": "a.py", "line": 3, "column": 1, "message": "no", "hint": None, "code": "arg-type", "severity": "error"}
_SARIF = {
    "version": "2.1.0",
    "runs": [
        {
            "tool": {"driver": {"name": "x", "rules": [{"id": "r", "defaultConfiguration": {"level": "error"}}]}},
            "results": [
                {
                    "ruleId": "r",
                    "message": {"text": "no"},
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": "file:///r/a%20b.py"},
                                "region": {"startLine": 3, "endLine": 5},
                            }
                        }
                    ],
                },
                {"ruleId": "r", "kind": "pass", "message": {"text": "fine"}},
                {"message": {"text": "nowhere"}},
            ],
        }
    ],
}


@every(
    ("name", "content", "results"),
    [
        ("eslint", json.dumps(_ESLINT), [Result("no-eval", "2", "eval", "a.js", 3, 3)]),
        ("bandit", json.dumps(_BANDIT), [Result("B307", "MEDIUM", "eval", "a.py", 3, 3)]),
        ("mypy", json.dumps(_MYPY) + "\n", [Result("arg-type", "error", "no", "a.py", 3, 3)]),
        ("mypy", "", []),
        ("gitleaks", json.dumps(_SARIF), [Result("r", "error", "no", "a b.py", 3, 5), Result("error", "warning", "nowhere")]),
    ],
)
def test_reports_of_the_shipped_tools_are_read(name: str, content: str, results: list[Result]) -> None:
    tool = next(one for one in load_tools() if one.name == name)
    assert read_report(content.encode(), tool.format, "/r", results=tool.results, fields=tool.fields) == results


@every(
    ("form", "content"),
    [
        ("sarif", "[]"),
        ("sarif", '{"runs": [{}]}'),
        ("sarif", '{"runs": null}'),
        ("json", '{"results": {}}'),
        ("json", '{"results": ["x"]}'),
        ("json-lines", '{"file": "a"}'),
        ("json-lines", "Traceback"),
        ("sarif", "\x00"),
        (
            "sarif",
            '{"runs": [{"tool": {"driver": {}}, "results": [], "invocations": [{"toolExecutionNotifications":'
            ' [{"level": "error", "message": {"text": "a rule is broken"}}]}]}]}',
        ),
    ],
)
def test_a_report_of_another_form_is_unreadable(form: str, content: str) -> None:
    bandit = next(one for one in load_tools() if one.name == "bandit")
    with pytest.raises(UnreadableReport):
        read_report(content.encode(), form, "/r", results=bandit.results, fields=bandit.fields)


def test_a_configuration_is_named_in_the_command_only_where_there_is_one() -> None:
    bandit = next(one for one in load_tools() if one.name == "bandit")
    assert bandit.command_for("/bin/bandit", None)[:2] == ("/bin/bandit", "--format")
    assert bandit.command_for("/bin/bandit", "bandit.yaml")[:4] == ("/bin/bandit", "--configfile", "bandit.yaml", "--format")


def test_an_unknown_level_counts_as_significant() -> None:
    tool = build_tool({**ROW, "rules": {"B2*": "minor"}})
    assert tool.severity_of(Result("B1", "strange", "x"), is_test=False) is Severity.SIGNIFICANT
    assert tool.severity_of(Result("B23", "error", "x"), is_test=False) is Severity.MINOR
