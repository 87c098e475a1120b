"""Each stage on changes that it must stop, and on honest ones that it must let go."""

from typing import Any

import pytest

from decklog.review.change import Change
from decklog.review.model_stages import run_architectural, run_feedback_binding, run_prose
from decklog.review.result import StageResult
from decklog.review.settings import ReviewSettings, Rules
from tests.conductor.plans import CALC
from tests.conductor.repositories import git
from tests.every import every
from tests.review.changes import FIX, GOOD, MESSAGE, SETTINGS, WATCHED, Desk, kinds, rules_of_stage_1, rules_of_stage_4, statuses

TOKEN = "ghp_" + "a1B2" * 9
NOBODY: Any = None


def by_file(result: StageResult) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in result.findings:
        if one.file is not None:
            found.setdefault(one.file, []).append(one.kind)
    return found


# Stage 1


def test_stage_1_looks_at_added_lines_alone(desk: Desk) -> None:
    desk.commit_to_base({"old.py": "# TODO\nimport pdb\n"})
    assert by_file(rules_of_stage_1(desk.commit({"old.py": "# TODO\nimport pdb\ny = 2\n"}))) == {}


def test_stage_1_stops_files_that_no_longer_parse(desk: Desk) -> None:
    desk.commit_to_base({"a.json": "{}\n", "b.json": "// notes\n{}\n", "c.toml": "[a]\n"})
    files = {"a.json": "{,}\n", "b.json": "// notes\n{,}\n", "c.toml": "[a\n", "d.py": "def f(:\n"}
    result = rules_of_stage_1(desk.commit(files))
    assert (result.status, by_file(result)) == ("fail", {"a.json": ["syntax"], "c.toml": ["syntax"], "d.py": ["syntax"]})


@pytest.mark.slow
def test_stage_1_runs_the_checks_of_the_base_that_need_no_test(desk: Desk) -> None:
    lint = '[[checks]]\nname = "lint"\ncommand = ["grep", "-q", "x", "{changed}"]\n'
    refuse = '[[checks]]\nname = "refuse"\ncommand = ["false"]\n'
    missing = '[[checks]]\nname = "missing"\ncommand = ["/no/such/program"]\n'
    for checks, status in ((lint, "pass"), (lint + refuse, "fail"), (missing, "unproven")):
        desk.settle(SETTINGS + checks)
        change = desk.commit({"a.txt": "x\n"})
        gate = desk.gate(change)
        assert gate.run_stage(1).status == status, checks
        git(desk.folder, "checkout", "-q", "main")


def test_words_of_data_are_no_removed_checks(desk: Desk) -> None:
    data = '{"words": ["pytest", "mypy", "' + "x" * 2000 + '"]}\n'
    desk.commit_to_base({"weights.json": data, "ci.json": '{"run": "pytest"}\n'})
    result = rules_of_stage_1(desk.commit({"weights.json": "{}\n", "ci.json": "{}\n"}))
    assert by_file(result) == {"ci.json": ["weakened-check"]}


@pytest.mark.slow
@every(
    ("manifest", "lock", "before", "after", "unrelated"),
    [
        (
            "pyproject.toml",
            "uv.lock",
            '[project]\ndependencies = ["a"]\n',
            '[project]\ndependencies = ["a", "b"]\n',
            '[project]\ndependencies = ["a"]\nversion = "2"\n',
        ),
        (
            "package.json",
            "yarn.lock",
            '{"dependencies": {}}',
            '{"dependencies": {"a": "1"}}',
            '{"dependencies": {}, "name": "x"}',
        ),
        ("go.mod", "go.sum", "module a\n", "module a\nrequire b.test/c v1.0.0\n", "module a\n\ngo 1.22\n"),
    ],
)
def test_lock_that_stays_while_its_manifest_changes_is_stale(
    desk: Desk, manifest: str, lock: str, before: str, after: str, unrelated: str
) -> None:
    git(desk.folder, "checkout", "-q", "main")
    desk.commit_to_base({manifest: before, lock: "x\n"})
    assert by_file(rules_of_stage_1(desk.commit({manifest: after}))) == {lock: ["stale-lock"]}
    assert by_file(rules_of_stage_1(desk.commit({manifest: after, lock: "y\n"}))) == {}
    assert by_file(rules_of_stage_1(desk.commit({manifest: unrelated}))) == {}


# Stage 4


def test_stage_4_stops_secrets_and_asks_about_locks(desk: Desk) -> None:
    rows = "\n".join(["MIIEpAIBAAKCAQEA" + "x7Qz" * 12] * 6)
    files = {
        "keys.py": f"TOKEN = '{TOKEN}'\n",
        "id": "-----BEGIN " + f"RSA PRIVATE KEY-----\n{rows}\n-----END " + "RSA PRIVATE KEY-----\n",
        "uv.lock": "x\n",
        ".github/workflows/ci.yml": "on: push\n",
        "fine.py": "TOKEN = os.environ['TOKEN']\npassword = 'changeme'\n",
    }
    result = rules_of_stage_4(desk.commit(files))
    assert {name: set(found) for name, found in by_file(result).items()} == {
        "keys.py": {"secret"},
        "id": {"secret"},
        "uv.lock": {"dependencies"},
        ".github/workflows/ci.yml": {"dependencies"},
    }
    assert TOKEN not in str(result)


def test_what_is_shown_or_put_together_stops_nothing(desk: Desk) -> None:
    def severities(files: dict[str, str | None]) -> dict[str, set[str]]:
        found = rules_of_stage_4(desk.commit(files)).findings
        return {name: {str(one.severity) for one in found if one.file == name} for name in files}

    random = "a1B2c3D4" + "e5F6g7H8"
    made = f"SECRET = 'mine-' + '{random}' * 9\n"
    let_go = {
        "docs/a.md": 'A pair such as `{token, "Token' + '2"}` is still taken.\n',
        "docs/b.md": "Show the token: HEADERS=" + '"authorization=Bearer%20TOKEN".\n',
        "tests/test_a.py": made,
    }
    assert set().union(*severities(let_go).values()) <= {"minor"}
    stopped = {
        "docs/c.md": f"The password is `{random}`.\n",
        "docs/d.md": "Log in with `password=Green" + "Frog7!`.\n",
        "made.py": made,
    }
    assert severities(stopped) == {key: {"blocking"} for key in stopped}


def test_a_secret_behind_many_smaller_findings_still_stops_the_change(desk: Desk) -> None:
    lines = "".join(f"x{number} = {{'pass': 'done'}}\n" for number in range(250))
    result = rules_of_stage_4(desk.commit({"a.py": lines, "z.py": f"TOKEN = '{TOKEN}'\n"}))
    assert (result.status, result.findings[0].kind) == ("fail", "secret")


def test_no_secret_is_looked_for_among_samples_that_the_base_names(desk: Desk) -> None:
    change = desk.commit({"samples/secrets.txt": f"{TOKEN}\n", "other.txt": f"{TOKEN}\n"})
    found = rules_of_stage_4(change, samples=("samples/",)).findings
    assert {(one.file, one.kind) for one in found if one.file} == {
        ("samples/secrets.txt", "not-checked"),
        ("other.txt", "secret"),
    }


# Stage 2


@pytest.mark.slow
def test_stage_2_stops_lost_tests_and_tests_that_show_nothing(desk: Desk) -> None:
    fewer = "import calc\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n"
    lost = desk.review(desk.commit({"calc.py": GOOD["calc.py"], "tests/test_calc.py": fewer}))
    assert (lost.verdict, kinds(lost, 2)) == ("block", ["census"])
    tests = GOOD["tests/test_calc.py"].replace("calc.triple(2) == 6", "True")
    vacuous = desk.review(desk.commit({**GOOD, "tests/test_calc.py": tests}))
    assert (vacuous.verdict, kinds(vacuous, 2), statuses(vacuous)[1]) == ("block", ["vacuous-test"], "f")


def test_stage_2_without_a_check_is_unproven(desk: Desk) -> None:
    desk.settle(SETTINGS.split("[[checks]]")[0])
    change = desk.commit(GOOD)
    found = desk.gate(change).run_stage(2)
    why = "the base commit of the change defines no check that runs tests"
    assert (found.status, found.why) == ("unproven", why)


# Stages 3 and 5


def _change(desk: Desk, *messages: str) -> Change:
    change = desk.commit(GOOD)
    return Change(change.repository, change.base, change.head, messages)


@every(
    ("message", "kind"),
    [
        ("fixup! Multiply", "title"),
        ("x" * 121, "title"),
        ("Multiply\nby three", "body"),
        (MESSAGE + "\n\nCo-Authored-By: Claude <noreply@anthropic.com>", "attribution"),
        (MESSAGE + "\n\n🤖 Generated with [Claude Code](https://example.test)", "attribution"),
        (MESSAGE + "\n\n🤖 Written by an AI assistant", "attribution"),
        (MESSAGE, None),
        ("修复空文件的读取", None),
        ('Revert "Read trailing commas"', None),
        (MESSAGE + "\n\nCo-Authored-By: Ana <ana@example.test>", None),
        (MESSAGE + "\n\nGenerated with protoc 3.2.", None),
        ("Record what Claude Code says in its hooks\n\nThe form changed with version 2.", None),
    ],
)
def test_stage_5_checks_the_form_of_messages(desk: Desk, message: str, kind: str | None) -> None:
    result = run_prose(_change(desk, message), Rules(), NOBODY)
    assert [one.kind for one in result.findings] == ([kind] if kind else []), message
    assert result.status == ("fail" if kind and kind != "body" else "pass")


def test_stage_5_takes_the_form_that_a_repository_asks_for(desk: Desk) -> None:
    rules = Rules(titles="conventional", body_needs=("Test plan",))
    assert [one.kind for one in run_prose(_change(desk, "Multiply"), rules, NOBODY).findings] == ["title", "body"]
    assert run_prose(_change(desk, "feat(calc)!: multiply\n\nTest plan: ran it"), rules, NOBODY).status == "pass"
    assert run_prose(_change(desk), rules, NOBODY).status == "skipped"


def test_stage_3_asks_for_documents_and_tests_where_the_settings_do(desk: Desk) -> None:
    code = {"calc.py": GOOD["calc.py"]}

    def found(rules: Rules, files: dict[str, str | None], message: str = MESSAGE) -> list[str]:
        settings = ReviewSettings(digest="d", rules=rules)
        return [one.kind for one in run_architectural(desk.commit(files, message), settings, NOBODY).findings]

    documents = Rules(model_passes=(), source=("*.py",), docs=("docs/",))
    assert found(documents, {**code}) == ["documents"]
    assert found(documents, {**code, "docs/a.md": "x\n"}) == []
    assert found(documents, {**code}, "Multiply\n\nDocs-not-needed: it is internal") == []
    tests = Rules(model_passes=(), needs_tests=True)
    assert found(tests, {**code}) == ["untested"]
    assert found(tests, {**GOOD}) == []
    assert found(tests, {"calc.py": "# Adds numbers.\n" + CALC, "a.md": "x\n"}) == []
    assert found(Rules(model_passes=()), {**code}) == []


# Stage 7


@pytest.mark.slow
def test_stage_7_binds_a_change_to_its_feedback_and_to_a_test_that_proves_it(desk: Desk) -> None:
    desk.settle(WATCHED)
    said = desk.log.feedback.file("ana", "Texts of numbers are not added")
    message = f"Add texts of numbers\n\n> Texts of numbers are not added\n\nFeedback: {said.id}"
    good = desk.review(desk.commit(FIX, message), feedback_id=said.id)
    assert (good.verdict, statuses(good), desk.asked[-1]) == ("pass", "ppppppp", "review.7"), good.findings
    assert good.feedback_id == said.id
    # Its test fails on the base by a name that is missing there, which shows nothing of the fault.
    missing = desk.review(desk.commit(GOOD, message), feedback_id=said.id)
    assert (missing.verdict, kinds(missing, 7)) == ("block", ["import-error"])


@pytest.mark.parametrize(
    ("message", "files", "kind"),
    [
        ("Multiply by three", GOOD, "feedback"),
        ("Multiply: ID\n\nNobody can multiply by three", {"calc.py": GOOD["calc.py"]}, "no-test"),
    ],
)
def test_stage_7_blocks_any_doubt(desk: Desk, message: str, files: dict[str, str], kind: str) -> None:
    said = desk.log.feedback.file("ana", "Nobody can multiply by three")
    change = desk.commit(files, message.replace("ID", said.id))
    result = desk.gate(change, feedback_id=said.id).run_stage(7)
    assert (result.status, {one.kind for one in result.findings}) == ("fail", {kind})
    given: dict[str, Any] = {"log": desk.log, "change": change, "prove": NOBODY, "ask": NOBODY}
    for feedback_id, is_fix, status in ((None, True, "fail"), ("fb-none", False, "fail"), (None, False, "skipped")):
        assert run_feedback_binding(**given, feedback_id=feedback_id, is_fix=is_fix).status == status
