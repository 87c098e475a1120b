"""Each pass over changes that it must hold, and over honest ones that it must let go."""

import ast
from typing import Any

import pytest

from decklog.review.change import Change
from decklog.review.passes.architectural import architectural
from decklog.review.passes.feedback_binding import feedback_binding
from decklog.review.passes.prose import prose
from decklog.review.passes.security import security
from decklog.review.passes.static import static
from decklog.review.result import Finding, PassResult
from decklog.review.reviewing import gate_of, settings_of
from decklog.review.rules.python_dangers import dangers
from decklog.review.settings import ReviewSettings, Rules
from tests.conductor.repositories import git, write
from tests.every import every
from tests.review.changes import FIX, GOOD, MESSAGE, SETTINGS, WATCHED, Desk, kinds, statuses

TOKEN = "ghp_" + "a1B2" * 9
NOBODY: Any = None


def by_file(result: PassResult) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in result.findings:
        if one.file is not None:
            found.setdefault(one.file, []).append(one.kind)
    return found


# Pass 1

_BAD_LINES = {
    "conflict.py": ("<<<<<<< ours\nx = 1\n=======\nx = 2\n>>>>>>> theirs\n", "conflict-marker"),
    "syntax.py": ("def f(:\n", "syntax"),
    "debug.py": ("def f():\n    breakpoint()\n", "debug"),
    "debug2.py": ("import pdb\n", "debug"),
    "debug3.py": ("def f(x):\n    print('DEBUG', x)\n", "debug"),
    "debug.js": ("function f() {\n  console.log(1);\n}\n", "debug"),
    "later.py": ("# TODO: make it faster\n", "note-for-later"),
    "later.go": ("// FIXME this is wrong\n", "note-for-later"),
    "space.py": ("x = 1  \n", "white-space"),
    "dead.py": ("x = 1\n# y = f(x)\n# return y + 1\n", "commented-out"),
    "dead2.py": ("# import os\n", "commented-out"),
    "dead.ts": ("// const x = f();\n", "commented-out"),
}
_GOOD_LINES = {
    "linked.py": "# TODO(#123): make it faster\n# FIXME see https://example.test/7\n# HACK for PROJ-12\n",
    "prose.py": "# Note (see below) that it is slow.\n# First the easy ones.\n# Names: one, two.\n# foo\n# The result\nx = 1\n",
    "shebang.py": "#!/usr/bin/env python3\nx = 1\n",
    "log.py": "def f(x):\n    print('the answer is', x)\n    logger.debug('x is %s', x)\n",
    "guide.md": "TODO list of the project: see #1\n\n    <<<<<<< a conflict looks so\n\ntwo spaces  \nmore\n",
    "typed.py": "# type: ignore\nx: int = 1  # noqa: E501\n",
    "table.txt": "=======\nname\n=======\n",
    "plain.ts": "// The first one wins; others wait.\nexport const x = 1;\n",
}


def test_pass_1_finds_what_no_program_has_to_be_run_for_and_lets_honest_lines_go(desk: Desk) -> None:
    files = {name: text for name, (text, _) in _BAD_LINES.items()}
    change = desk.commit({**files, **_GOOD_LINES})
    found = by_file(static(change, ReviewSettings(digest="d"), NOBODY))
    assert {name: kind for name, (_, kind) in _BAD_LINES.items() if kind not in found.get(name, [])} == {}
    assert {name: found[name] for name in _GOOD_LINES if name in found} == {}


def test_pass_1_looks_at_added_lines_alone(desk: Desk) -> None:
    (desk.folder / "old.py").write_text("x = 1  \n# TODO\nimport pdb\n", encoding="utf-8")
    git(desk.folder, "add", "-A")
    git(desk.folder, "commit", "-q", "-m", "Old")
    change = desk.commit({"old.py": "x = 1  \n# TODO\nimport pdb\ny = 2\n"})
    assert by_file(static(change, ReviewSettings(digest="d"), NOBODY)) == {}


def test_pass_1_runs_the_checks_of_the_base_that_need_no_test(desk: Desk) -> None:
    lint = '[[checks]]\nname = "lint"\ncommand = ["grep", "-q", "x", "{changed}"]\n'
    refuse = '[[checks]]\nname = "refuse"\ncommand = ["false"]\n'
    missing = '[[checks]]\nname = "missing"\ncommand = ["/no/such/program"]\n'
    for checks, status in ((lint, "pass"), (lint + refuse, "fail"), (missing, "unproven")):
        desk.settle(SETTINGS + checks)
        change = desk.commit({"a.txt": "x\n"})
        settings = settings_of(change)
        run_id = desk.log.runs.start("Review").id
        gate = gate_of(desk.log, change, settings, desk.folder.parent / "work", run_id=run_id)
        assert gate.one(1).status == status, checks
        git(desk.folder, "checkout", "-q", "main")


# Pass 4

_DANGEROUS = {
    "eval": "eval(text)",
    "exec": "import builtins\nbuiltins.exec(text)",
    "shell": "import os\nos.system('ls ' + name)",
    "shell alias": "from os import system as run\nrun(text)",
    "shell module alias": "import os as o\no.popen(text)",
    "shell import": "__import__('os').system(text)",
    "shell getattr": "import os\ngetattr(os, 'system')(text)",
    "shell name": "import os\ndo = os.system\ndo(text)",
    "shell true": "import subprocess\nsubprocess.run(text, shell=True)",
    "shell from": "from subprocess import Popen as P\nP(text, shell=flag)",
    "shell asyncio": "import asyncio\nasyncio.create_subprocess_shell(text)",
    "unpickling": "import pickle\npickle.loads(data)",
    "unpickling from": "from marshal import loads\nloads(data)",
    "unpickling yaml": "import yaml\nyaml.load(text)",
    "unpickling yaml2": "import yaml\nyaml.load(text, Loader=yaml.Loader)",
    "sql": 'db.execute(f"select * from t where id = {x}")',
    "sql plus": "db.execute('delete from t where id = ' + x)",
    "sql percent": "db.cursor().x\ncursor.execute('update t set a = %s' % x)",
    "sql format": "cursor.executemany('insert into t values ({})'.format(x), rows)",
}
_HARMLESS = {
    "literal": "import ast\nast.literal_eval(text)",
    "own eval": "def eval(x):\n    return x\n\n\neval(1)",
    "method": "model.eval()",
    "run": "import subprocess\nsubprocess.run(['ls', name], check=True)",
    "shell false": "import subprocess\nsubprocess.run(['ls'], shell=False)",
    "json": "import json\njson.loads(text)",
    "yaml": "import yaml\nyaml.safe_load(text)\nyaml.load(text, Loader=yaml.SafeLoader)",
    "bound": "db.execute('select * from t where id = ?', (x,))",
    "constant": "db.execute('select * from t ' + 'where a = 1')",
    "no sql": "pool.execute(f'job {x}')",
    "compile": "import re\nre.compile(text)",
}


@every(("name", "source"), list(_DANGEROUS.items()), ids=list(_DANGEROUS))
def test_dangerous_calls_are_found_by_whatever_name(name: str, source: str) -> None:
    assert [one.kind for one in dangers(ast.parse(source))] == [name.split()[0].replace("exec", "eval")]


def test_a_statement_that_only_names_tables_is_minor_by_whatever_name_unless_that_may_mean_another() -> None:
    names = "insert = f\"insert into t ({', '.join(names)}) values ({', '.join('?' * len(names))})\"\n"
    risky = 'insert = f"insert into t values ({x})"\n'
    cases = {names: True, risky: False, risky + names: False}
    for source, is_minor in cases.items():
        assert [one.is_minor for one in dangers(ast.parse(f"{source}db.executemany(insert, rows)"))] == [is_minor], source


@every("source", list(_HARMLESS.values()), ids=list(_HARMLESS))
def test_calls_that_only_look_alike_are_let_go(source: str) -> None:
    assert list(dangers(ast.parse(source))) == []


def test_pass_4_holds_secrets_dangers_and_commands_and_asks_about_locks(desk: Desk) -> None:
    block = (
        "-----BEGIN "
        + "RSA PRIVATE KEY-----\n"
        + "\n".join(["MIIEpAIBAAKCAQEA" + "x7Qz" * 12] * 6)
        + "\n-----END "
        + "RSA PRIVATE KEY-----\n"
    )
    files = {
        "keys.py": f"TOKEN = '{TOKEN}'\n",
        "id": block,
        "run.py": "import os\nos.system(text)\n",
        "wipe.sh": "#!/bin/sh\nrm -rf /\n",
        "uv.lock": "x\n",
        ".github/workflows/ci.yml": "on: push\n",
        "fine.py": "TOKEN = os.environ['TOKEN']\npassword = 'changeme'\n",
        "fine.sh": "#!/bin/sh\nset -e\nmake test\n",
    }
    result = security(desk.commit(files))
    assert {name: set(found) for name, found in by_file(result).items()} == {
        "keys.py": {"secret"},
        "id": {"secret"},
        "run.py": {"shell"},
        "wipe.sh": {"command"},
        "uv.lock": {"dependencies"},
        ".github/workflows/ci.yml": {"dependencies"},
    }
    assert TOKEN not in str(result)
    assert [one.line for one in result.findings if one.file == "run.py"] == [2]


def test_what_is_shown_or_put_together_is_told_and_stops_nothing(desk: Desk) -> None:
    def severities(files: dict[str, str | None]) -> dict[str, set[str]]:
        found = security(desk.commit(files)).findings
        return {name: {str(one.severity) for one in found if one.file == name} for name in files}

    random = "a1B2c3D4" + "e5F6g7H8"
    made = f"SECRET = 'mine-' + '{random}' * 9\n"
    told = {
        "docs/a.md": 'A pair such as `{token, "Token' + '2"}` is still taken.\n',
        "docs/b.md": "Show the token: HEADERS=" + '"authorization=Bearer%20TOKEN".\n',
        "tests/test_a.py": made,
    }
    assert set().union(*severities(told).values()) <= {"minor"}
    held = {
        "docs/c.md": f"The password is `{random}`.\n",
        "docs/d.md": "Log in with `password=Green" + "Frog7!`.\n",
        "made.py": made,
    }
    assert severities(held) == {key: {"blocking"} for key in held}


_TALK = "import os\nimport pickle\n\n\ndef ask(data):\n    told, tell = os.pipe()\n    os.write(tell, pickle.dumps(data))\n"
_HEARD = "    return pickle.loads(os.read(told, 100))\n"


@every(
    ("source", "is_minor"),
    [
        (_TALK + _HEARD, True),
        (_TALK.replace("pickle.dumps(data)", "data") + _HEARD, False),
        ("import requests\n" + _TALK + _HEARD, False),
        ("import base64\n" + _TALK + _HEARD, False),
        ("import pickle\n\n\ndef copy(file, data):\n    pickle.dump(data, file)\n    return pickle.load(file)\n", False),
    ],
    ids=["its own process", "written by others", "the network too", "texts of others", "a file"],
)
def test_what_a_process_of_the_modules_own_sends_is_told_and_stops_nothing(source: str, is_minor: bool) -> None:
    assert [(one.kind, one.is_minor) for one in dangers(ast.parse(source))] == [("unpickling", is_minor)]


def test_words_of_data_are_no_checks_that_are_gone(desk: Desk) -> None:
    data = '{"words": ["pytest", "mypy", "' + "x" * 2000 + '"]}\n'
    write(desk.folder, {"weights.json": data, "ci.json": '{"run": "pytest"}\n'})
    git(desk.folder, "add", "-A")
    git(desk.folder, "commit", "-q", "-m", "Data")
    result = static(desk.commit({"weights.json": "{}\n", "ci.json": "{}\n"}), ReviewSettings(digest="d"), NOBODY)
    assert by_file(result) == {"ci.json": ["weakened-check"]}


def test_a_secret_behind_many_smaller_findings_still_stops_the_change(desk: Desk) -> None:
    lines = "".join(f"x{number} = {{'pass': 'done'}}\n" for number in range(60))
    result = security(desk.commit({"a.py": lines, "z.py": f"TOKEN = '{TOKEN}'\n"}))
    assert (result.status, result.findings[0].kind) == ("fail", "secret")


# Pass 2


def test_pass_2_holds_lost_tests_asks_about_changed_ones_and_names_those_that_show_nothing(desk: Desk) -> None:
    lost = desk.review(
        desk.commit(
            {
                "calc.py": GOOD["calc.py"],
                "tests/test_calc.py": "import calc\n\n\ndef test_add():\n    assert calc.add(2, 3) == 5\n",
            }
        )
    )
    assert (lost.verdict, kinds(lost, 2)) == ("block", ["census"])
    tests = GOOD["tests/test_calc.py"].replace("calc.triple(2) == 6", "True")
    vacuous = desk.review(desk.commit({**GOOD, "tests/test_calc.py": tests}))
    assert (vacuous.verdict, kinds(vacuous, 2), statuses(vacuous)[1]) == ("block", ["vacuous-test"], "f")


def test_pass_2_without_a_check_is_unproven(desk: Desk) -> None:
    desk.settle(SETTINGS.split("[[checks]]")[0])
    change = desk.commit(GOOD)
    run_id = desk.log.runs.start("Review").id
    found = gate_of(desk.log, change, settings_of(change), desk.folder.parent / "work", run_id=run_id).one(2)
    assert (found.status, found.why) == (
        "unproven",
        "no check that runs tests is defined in the commit that the change starts from",
    )


# Passes 3 and 5


def _change(desk: Desk, *messages: str) -> Change:
    change = desk.commit(GOOD)
    return Change(change.repository, change.base, change.head, messages)


@every(
    ("message", "kind"),
    [
        ("wip", "title"),
        ("fixup! Multiply", "title"),
        ("Fix.", "title"),
        ("x" * 121, "title"),
        (MESSAGE + "\n\nCo-Authored-By: Claude <noreply@anthropic.com>", "attribution"),
        (MESSAGE + "\n\n🤖 Generated with [Claude Code](https://example.test)", "attribution"),
        (MESSAGE, None),
        ("Fix the reading of empty files", None),
        (MESSAGE + "\n\nCo-Authored-By: Ana <ana@example.test>", None),
        (MESSAGE + "\n\nGenerated with protoc 3.2.", None),
    ],
    ids=[str(number) for number in range(10)],
)
def test_pass_5_holds_messages_to_their_form(desk: Desk, message: str, kind: str | None) -> None:
    result = prose(_change(desk, message), Rules(), NOBODY)
    assert [one.kind for one in result.findings] == ([kind] if kind else [])
    assert result.status == ("fail" if kind else "pass")


def test_pass_5_takes_the_form_that_a_repository_asks_for(desk: Desk) -> None:
    rules = Rules(titles="conventional", body_needs=("Test plan",))
    assert [one.kind for one in prose(_change(desk, "Multiply"), rules, NOBODY).findings] == ["title", "body"]
    assert prose(_change(desk, "feat(calc)!: multiply\n\nTest plan: ran it"), rules, NOBODY).status == "pass"
    assert prose(_change(desk), rules, NOBODY).status == "skipped"


def test_pass_3_asks_for_a_word_about_public_names_that_go_and_for_documents(desk: Desk) -> None:
    rules = Rules(model_passes=(), source=("*.py",), docs=("docs/",))
    settings = ReviewSettings(digest="d", rules=rules)
    gone = {"calc.py": "def add(a, b):\n    return a + b\n\n\ndef _own(a):\n    return a\n"}

    def told(change: Change) -> list[Finding]:
        # What its tests still call, and that none of them changes, is told by others.
        found = architectural(change, settings, NOBODY).findings
        return [one for one in found if one.kind in ("public-name", "documents")]

    assert [one.kind for one in told(desk.commit(gone))] == ["public-name", "documents"]
    said = desk.commit({**gone, "docs/a.md": "x\n"}, "Take double away")
    assert told(said) == []
    package = {
        "shop/__init__.py": "from shop.prices import price\n",
        "shop/prices.py": "def price():\n    pass\n\n\ndef own():\n    pass\n",
    }
    write(desk.folder, package)
    git(desk.folder, "checkout", "-q", "main")
    git(desk.folder, "add", "shop")
    git(desk.folder, "commit", "-q", "-m", "A package")
    change = desk.commit({"shop/prices.py": "", "docs/a.md": "x\n"}, "Tidy up")
    found = {one.text.split()[3]: one.severity.value for one in told(change)}
    assert found == {"price": "significant", "own": "minor"}
    moved = desk.commit({**gone, "more.py": "def double(a):\n    return 2 * a\n"}, "Move it\n\nDocs-not-needed: it only moved")
    assert told(moved) == []


# Pass 7


def test_pass_7_binds_a_change_to_the_words_that_it_answers_and_to_a_test_that_shows_it(desk: Desk) -> None:
    desk.settle(WATCHED)
    said = desk.log.feedback.file("ana", "Texts of numbers are not added")
    message = f"Add texts of numbers\n\n> Texts of numbers are not added\n\nFeedback: {said.id}"
    good = desk.review(desk.commit(FIX, message), feedback_id=said.id)
    assert (good.verdict, statuses(good), desk.asked[-1]) == ("pass", "ppppppp", "review.7"), good.findings
    assert good.feedback_id == said.id
    # Its test fails on the base by a name that is missing there, which says nothing of what goes wrong.
    missing = desk.review(desk.commit(GOOD, message), feedback_id=said.id)
    assert (missing.verdict, kinds(missing, 7)) == ("block", ["import-error"])


@pytest.mark.parametrize(
    ("message", "files", "kind"),
    [
        ("Multiply by three", GOOD, "feedback"),
        ("Multiply: ID\n\nNobody can multiply by three", {"calc.py": GOOD["calc.py"]}, "no-test"),
    ],
)
def test_pass_7_blocks_whatever_is_in_doubt(desk: Desk, message: str, files: dict[str, str], kind: str) -> None:
    said = desk.log.feedback.file("ana", "Nobody can multiply by three")
    change = desk.commit(files, message.replace("ID", said.id))
    settings = settings_of(change)
    run_id = desk.log.runs.start("Review").id
    gate = gate_of(desk.log, change, settings, desk.folder.parent / "work", run_id=run_id, feedback_id=said.id)
    result = gate.one(7)
    assert (result.status, {one.kind for one in result.findings}) == ("fail", {kind})
    given: dict[str, Any] = {"log": desk.log, "change": change, "prove": NOBODY, "ask": NOBODY}
    for feedback_id, is_mending, status in ((None, True, "fail"), ("fb-none", False, "fail"), (None, False, "skipped")):
        assert feedback_binding(**given, feedback_id=feedback_id, is_mending=is_mending).status == status
