"""Items that meet: each lands or says why not, and the target is never red."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor.context import RunContext
from decklog.conductor.stages import LAND
from tests.conductor.plans import SETTINGS, Work, landed, landed_titles, settle, states, target_of, work_item
from tests.conductor.repositories import everything, git, write

FULL = "DECKLOG_TEST_FULL" in os.environ
ADD = "def add(a, b):\n    return a + b"


def check_never_red(context: RunContext, folder: Path) -> None:
    green = {one.tree for one in context.log.verdicts.find(context.run_id, outcome="pass", limit=200)}  # type: ignore[arg-type]
    assert set(git(folder, "log", "--format=%T", target_of(context)).split()) <= green
    for commit in git(folder, "rev-list", target_of(context)).split():
        assert "<<<<<<<" not in git(folder, "show", f"{commit}:notes.txt")


@pytest.mark.slow
def test_items_that_all_change_one_line_land_one_by_one_or_are_blocked(sqlite_target: str, checked: Path) -> None:
    count = 20 if FULL else 4
    write(checked, {"decklog.toml": SETTINGS.replace("agents = 2", "agents = 4")})
    git(checked, "commit", "-q", "-a", "--amend", "--no-edit")
    items = [work_item(f"p{number}", ["replace", "notes.txt", "two", f"two {number}"]) for number in range(count)]
    before = everything(checked)
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, *items).run()
        assert everything(checked) == before
        ended = {name: state for name, state in states(context).items() if "." not in name}
        assert len(landed_titles(context)) == list(ended.values()).count("done") >= 1
        assert set(ended.values()) <= {"done", "blocked"}
        check_never_red(context, checked)


UNIQUE = (
    "import os\n\n\ndef test_unique():\n    found = [open(os.path.join('names', one)).read() for one in os.listdir('names')]\n"
    "    assert len(set(found)) == len(found)\n"
)
# Each is green by itself, and they merge without a conflict.
PAIRS: dict[str, tuple[list[list[Any]], list[list[Any]]]] = {
    "narrowed argument": (
        [["replace", "calc.py", ADD, "def add(a, b):\n    assert a < 1000\n    return a + b"]],
        [["write", "tests/test_wide.py", "import calc\n\n\ndef test_wide():\n    assert calc.add(1000, 1) == 1001\n"]],
    ),
    "registry of names": (
        [["write", "names/a.py", "NAME = 'x'\n"], ["write", "tests/test_names.py", UNIQUE]],
        [["write", "names/b.py", "NAME = 'x'\n"]],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAIRS)
def test_two_changes_that_break_together_do_not_both_land(sqlite_target: str, checked: Path, kind: str) -> None:
    one, other = PAIRS[kind]
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, work_item("one", *one), work_item("other", *other)).run()
        check_never_red(context, checked)
        assert len(landed_titles(context)) == 1
        kept = [name for name in context.repository.refs("refs/decklog") if name.endswith("/changed")]
        assert {name.split("/")[4].split(".")[-2] for name in kept} == {"one", "other"}, "the work of both is kept"


# Somebody else lands, once, while the second item is being checked as it would land.
RACE = """
test -e one.txt && test -e two.txt && test ! -e {mark} || exit 0
touch {mark}
cd {folder}
ref=$(git for-each-ref --format='%(refname)' 'refs/decklog/*/target')
old=$(git rev-parse "$ref")
git update-ref "$ref" "$(git commit-tree "$old^{{tree}}" -p "$old" -m "Another's")" "$old"
"""


@pytest.mark.slow
def test_a_target_that_moved_meanwhile_is_merged_with_anew(sqlite_target: str, checked: Path, tmp_path: Path) -> None:
    racing = ["sh", "-c", RACE.format(mark=tmp_path / "mark", folder=checked)]
    settle(checked, f'{SETTINGS}[[checks]]\nname = "race"\ncommand = {json.dumps(racing)}\n')
    # Both begin before either lands.
    one = work_item("one", ["write", str(tmp_path / "one"), ""], ["wait", str(tmp_path / "two")], ["write", "one.txt", "1\n"])
    two = work_item("two", ["write", str(tmp_path / "two"), ""], ["wait", str(tmp_path / "one")], ["write", "two.txt", "2\n"])
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, one, two).run()
        first, *others = landed_titles(context)
        assert {first, *others} == {"Another's", "Item one", "Item two"}
        assert others[0] == "Another's"
        assert (landed(context, "one.txt"), landed(context, "two.txt")) == ("1", "2")
        advanced = log.effects.find(context.run_id, tool="conductor.advance")
        assert sorted(str(one.result) for one in advanced) == ["False", "True", "True"]


@pytest.mark.slow
def test_what_was_merged_by_others_already_is_landed_without_a_commit(sqlite_target: str, checked: Path) -> None:
    same = ["write", "b.txt", "same\n"]
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, work_item("one", same), work_item("two", same)).run()
        assert len(landed_titles(context)) == 1
        assert {task.state for task in log.tasks.find(context.run_id, role=LAND)} == {"done"}
