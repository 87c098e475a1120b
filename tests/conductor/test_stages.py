"""An item goes through its stages: worked on, checked, landed; and back, with what was found."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid, NotFound
from decklog.conductor import plan, settings
from decklog.conductor.conductor import Conductor
from decklog.conductor.status import run_status
from decklog.guard.sandbox.sandbox import SandboxKind, best_kind
from tests.conductor.plans import NO_STRATEGIST, SETTINGS, TRIPLE, Work, landed, landed_titles, settle, states, task_of, work_item
from tests.conductor.repositories import everything, git, write


@pytest.fixture(params=["sqlite"])
def target(request: pytest.FixtureRequest) -> str:
    """One engine is enough for most of this: the verbs are tested on both, and the whole way is below."""
    return str(request.getfixturevalue(f"{request.param}_target"))


on_both = pytest.mark.parametrize("target", ["sqlite", "postgres"], indirect=True)

OLD = "test_old.py::test_old"
BAD = ["replace", "calc.py", "return a + b", "return a - b"]


@pytest.mark.slow
@on_both
def test_an_item_is_worked_on_checked_and_landed(log: Decklog, checked: Path) -> None:
    write(checked, {"mine.txt": "untouched\n", "calc.py": "half an idea\n"})
    before = everything(checked)
    context = Work(log, checked, work_item("triple", TRIPLE)).run()
    assert states(context) == {"triple.w1": "done", "triple": "done", "triple.c1": "done"}
    assert "def triple" in landed(context, "calc.py")
    assert landed_titles(context) == ["Item triple"]
    assert everything(checked) == before
    assert log.effects.open(context.run_id) == []
    assert log.journal.verify(context.run_id).ok
    said = log.verdicts.find(context.run_id)
    assert [one.outcome for one in said] == ["pass", "pass"], "the candidate has the tip's tree, and is not checked again"
    assert list(context.folder.glob("*/tree")) == []


@pytest.mark.slow
def test_red_work_goes_back_with_what_was_found_and_lands_in_the_next_round(log: Decklog, checked: Path) -> None:
    mended = ["replace", "calc.py", "return a - b", "return b + a"]
    context = Work(log, checked, work_item("add", BAD, again=[mended])).run()
    assert states(context) == dict.fromkeys(("add.w1", "add", "add.c1", "add.w2", "add.c2"), "done")
    findings: Any = task_of(context, "add.w2").inputs["findings"]
    assert findings[0]["tests"] == ["test_calc.py::test_add", "test_calc.py::test_double"]
    assert "return b + a" in landed(context, "calc.py")


@pytest.mark.slow
def test_what_is_red_in_the_last_round_is_held_and_never_lands(log: Decklog, checked: Path) -> None:
    settle(checked, SETTINGS + NO_STRATEGIST)
    later = work_item("later", TRIPLE, needs=["add"])
    context = Work(log, checked, work_item("add", BAD, again=[["write", "notes.txt", "no\n"]]), later).run()
    assert states(context) == {
        **dict.fromkeys(("add.w1", "add.c1", "add.w2"), "done"),
        "add.c2": "blocked",
        **dict.fromkeys(("add", "later.w1", "later"), "pending"),
    }, [(task.id, task.blocker, task.reason) for task in log.tasks.find(context.run_id)]
    assert landed_titles(context) == []


FAILURES: dict[str, tuple[list[list[Any]], dict[str, Any], str]] = {
    "nothing": ([], {}, "no-change"),
    "out of bounds": ([["write", "docs/a.txt", "a\n"]], {"paths": ["*.py"]}, "out-of-bounds"),
    "exit code": ([TRIPLE, ["exit", 4]], {}, "exit"),
    "link out": ([["run", ["ln", "-s", "/etc/passwd", "p.py"]]], {}, "link-out"),
}


@pytest.mark.slow
def test_an_attempt_that_is_not_done_fails_and_the_item_is_blocked_after_the_last(sqlite_target: str, checked: Path) -> None:
    items = [work_item(kind.replace(" ", "-"), *steps, **given) for kind, (steps, given, _) in FAILURES.items()]
    settle(checked, SETTINGS + NO_STRATEGIST)
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, *items).run()
        for kind, (*_, blocker) in FAILURES.items():
            task = task_of(context, f"{kind.replace(' ', '-')}.w1")
            assert (task.state, task.blocker, task.failures) == ("blocked", blocker, 2)
        assert landed_titles(context) == []
        kept = context.repository.refs("refs/decklog")
        assert sum(name.endswith("/folder") for name in kept) == 2 * len(FAILURES), "what each attempt left is kept"


@pytest.mark.slow
def test_two_items_that_do_not_merge_are_worked_on_one_after_the_other(log: Decklog, checked: Path) -> None:
    one = work_item("one", ["replace", "notes.txt", "two", "TWO"], again=[["replace", "notes.txt", "zwei", "TWO"]])
    other = work_item("other", ["replace", "notes.txt", "two", "zwei"], again=[["replace", "notes.txt", "TWO", "ZWEI"]])
    context = Work(log, checked, one, other).run()
    assert sorted(landed_titles(context)) == ["Item one", "Item other"]
    rounds = [name for name in states(context) if name.endswith(".w2")]
    assert len(rounds) == 1
    again = task_of(context, rounds[0])
    findings: Any = again.inputs["findings"]
    assert (findings[0]["kind"], findings[0]["paths"]) == ("conflict", ["notes.txt"])
    assert "<<<<<<<" not in landed(context, "notes.txt")


@pytest.mark.slow
def test_a_change_of_protected_paths_waits_for_a_person_who_is_asked_about_exactly_that(log: Decklog, checked: Path) -> None:
    work = Work(log, checked, work_item("settings", TRIPLE, ["write", "setup.cfg", ""]))
    context = work.run()
    assert states(context)["settings.c1"] == "waiting"
    (question,) = log.approvals.find(context.run_id)
    assert "protected" in str(question.question)
    assert log.approvals.show(question.id)["cause"] == {
        "rule": "protected",
        "reason": "the change has protected paths",
    }
    assert landed_titles(context) == []
    log.approvals.decide(question.id, "granted", by="ana", subject_digest=question.subject_digest)  # type: ignore[arg-type]
    assert landed_titles(work.run()) == ["Item settings"]


@pytest.mark.slow
def test_a_no_goes_back_as_a_finding(log: Decklog, checked: Path) -> None:
    work = Work(log, checked, work_item("settings", ["write", "setup.cfg", ""], again=[["delete", "setup.cfg"], TRIPLE]))
    context = work.run()
    (question,) = log.approvals.find(context.run_id)
    log.approvals.decide(question.id, "denied", by="ana", rationale="not here")  # type: ignore[arg-type]
    context = work.run()
    findings: Any = task_of(context, "settings.w2").inputs["findings"]
    assert findings[-1] == {"kind": "denied", "text": "not here"}
    assert landed_titles(context) == ["Item settings"]


@pytest.mark.slow
def test_a_yes_to_one_tree_does_not_serve_another(log: Decklog, checked: Path) -> None:
    first = Work(
        log, checked, work_item("settings", TRIPLE, ["write", "setup.cfg", ""]), work_item("other", ["write", "b.txt", "1\n"])
    )
    context = first.run()
    assert landed_titles(context) == ["Item other"]
    (question,) = log.approvals.find(context.run_id)
    log.approvals.decide(question.id, "granted", by="ana", subject_digest=question.subject_digest)  # type: ignore[arg-type]
    first.run()
    # What would land is another tree than the one that was approved, since another item has landed meanwhile.
    questions = log.approvals.find(context.run_id)
    assert [one.state for one in questions] == ["open", "granted"]
    assert landed_titles(context) == ["Item other"]


@pytest.mark.slow
def test_money_is_reserved_for_an_item_and_a_spender_is_ended(sqlite_target: str, checked: Path) -> None:
    priced = SETTINGS.replace(
        'commits = "conductor"',
        'commits = "conductor"\nstream = "jsonl"\n'
        'events = [{ when = { "/type" = "turn" }, as = "usage", take = { cost_usd = "/cost" } }]',
    )
    write(checked, {"decklog.toml": priced + "\n[budget]\nrun_usd = 10.0\nitem_usd = 1.0\n" + NO_STRATEGIST})
    git(checked, "commit", "-q", "-a", "-m", "Money")
    turns = ["repeat", 20, [["print", {"type": "turn", "cost": 1.5}], ["sleep", 3]]]
    cheap = work_item("cheap", ["print", {"type": "turn", "cost": 0.25}], TRIPLE)
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, cheap, work_item("dear", turns)).run()
        assert landed_titles(context) == ["Item cheap"]
        assert task_of(context, "dear.w1").blocker == "budget"
        spent = dict.fromkeys(("cheap.w1", "dear.w1"), 0)
        for charge in log.ledger.find(context.run_id, limit=200):
            spent[str(charge.task_id).removeprefix(f"{context.run_id}.")] += charge.cost_microdollars or 0
        assert spent["cheap.w1"] == 250_000
        assert spent["dear.w1"] <= 2 * (1_000_000 + 1_500_000), "two attempts, each its item and one turn"


@pytest.mark.slow
def test_eight_agents_at_once_spend_no_more_than_the_budget_and_a_turn_each(sqlite_target: str, checked: Path) -> None:
    events = (
        'stream = "jsonl"\nminutes = 0.05\n'
        'events = [{ when = { "/type" = "turn" }, as = "usage", take = { cost_usd = "/cost" } }]'
    )
    settings = SETTINGS.replace('commits = "conductor"', f'commits = "conductor"\n{events}').replace("agents = 2", "agents = 8")
    settle(
        checked,
        settings.replace("attempts = 2", "attempts = 1") + "\n[budget]\nrun_usd = 2.0\nitem_usd = 0.25\n" + NO_STRATEGIST,
    )
    turn = {"type": "turn", "cost": 0.2}
    by_turn = [work_item(f"turn{number}", ["repeat", 9, [["print", turn], ["sleep", 1]]]) for number in range(3)]
    at_end = [work_item(f"end{number}", ["write", f"end{number}.txt", "1\n"], ["print", turn]) for number in range(3)]
    never = [work_item(f"never{number}", ["write", f"never{number}.txt", "1\n"], ["sleep", 60]) for number in range(2)]
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, *by_turn, *at_end, *never).run()
        stands = run_status(log, context.run_id)
        assert sorted(landed_titles(context)) == [f"Item end{number}" for number in range(3)]
        assert 600_000 <= stands.spent_microdollars <= 2_000_000 + 8 * 200_000
        assert {task_of(context, f"{name}.w1").blocker for name in ("never0", "never1")} == {"time"}
        assert {task_of(context, f"turn{number}.w1").blocker for number in range(3)} <= {"budget", "time"}
        assert (stands.unpriced_calls, "2 calls of unknown price" in stands.spent()) == (2, True)


@pytest.mark.slow
def test_without_money_nothing_new_is_begun_and_the_run_ends(sqlite_target: str, checked: Path) -> None:
    write(checked, {"decklog.toml": SETTINGS + "\n[budget]\nrun_usd = 1.0\nitem_usd = 2.0\n"})
    git(checked, "commit", "-q", "-a", "-m", "Money")
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, work_item("it", TRIPLE)).run()
        assert states(context) == {"it.w1": "pending", "it": "pending"}


@pytest.mark.slow
def test_an_item_waits_for_the_money_that_another_did_not_spend(sqlite_target: str, checked: Path) -> None:
    write(checked, {"decklog.toml": SETTINGS + "\n[budget]\nrun_usd = 1.0\nitem_usd = 1.0\n"})
    git(checked, "commit", "-q", "-a", "-m", "Money")
    items = [work_item(f"p{number}", ["write", f"p{number}.txt", "1\n"]) for number in range(2)]
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, *items).run()
        assert sorted(landed_titles(context)) == ["Item p0", "Item p1"]


@pytest.mark.slow
@pytest.mark.skipif(best_kind() is SandboxKind.NONE, reason="no sandbox can be had here")
def test_agents_and_checks_work_in_a_sandbox_and_write_nowhere_else(sqlite_target: str, checked: Path, tmp_path: Path) -> None:
    here = json.dumps(str(Path(__file__).parent))
    held = SETTINGS.replace('sandbox = "none"', 'sandbox = "auto"').replace("commits =", f"readable = [{here}]\ncommits =")
    write(checked, {"decklog.toml": held.replace('report = "junit"', f'report = "junit"\nreadable = [{here}]')})
    git(checked, "commit", "-q", "-a", "-m", "Held")
    canary = checked / ".git/config"
    reach = ["run", ["sh", "-c", f"echo reached >> {canary}; echo reached > {tmp_path}/out"]]
    before = everything(checked)
    with Decklog.open(sqlite_target) as log:
        context = Work(log, checked, work_item("it", reach, TRIPLE, ["commit"])).run()
        assert landed_titles(context) == ["Item it"]
    assert everything(checked) == before
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_three_conductors_of_one_run_do_nothing_twice(log: Decklog, checked: Path) -> None:
    items = [work_item(f"p{number}", ["write", f"p{number}.txt", "1\n"]) for number in range(3)]
    context = Work(log, checked, *items).context()
    threads = [threading.Thread(target=Conductor(context).run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(landed_titles(context)) == [f"Item p{number}" for number in range(3)]
    assert {task.attempts for task in log.tasks.find(context.run_id, limit=200)} == {1}


@pytest.mark.slow
def test_a_red_base_is_refused_before_anything_is_planned(sqlite_target: str, checked: Path) -> None:
    write(checked, {"calc.py": "def add(a, b):\n    return 0\n"})
    git(checked, "commit", "-q", "-a", "-m", "Red")
    with Decklog.open(sqlite_target) as log:
        with pytest.raises(Conflict, match="does not pass its own checks"):
            Work(log, checked, work_item("it", TRIPLE)).run()
        assert [run.status for run in log.runs.find()] == ["failed"]
        write(checked, {"calc.py": "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return 2 * a\n"})
        git(checked, "commit", "-q", "-a", "-m", "Green")
        assert landed_titles(Work(log, checked, work_item("it", TRIPLE)).run()) == ["Item it"]


@pytest.mark.slow
def test_a_test_that_a_person_names_may_stay_red_and_no_other_may_become_so(log: Decklog, checked: Path) -> None:
    write(checked, {"tests/test_old.py": "def test_old():\n    assert False\n"})
    git(checked, "add", "-A")
    git(checked, "commit", "-q", "-m", "Red")
    settle(checked, SETTINGS + NO_STRATEGIST)
    work = Work(log, checked, work_item("it", TRIPLE), work_item("bad", BAD))
    with pytest.raises(Conflict, match="does not pass its own checks") as refused:
        work.context()
    assert "--from-red test_old.py::test_old" in str(refused.value.hint)
    for known, problem in ((("test_calc.py::test_add",), "does not pass"), (("test_calc.py::test_add", OLD), "does not fail")):
        with pytest.raises(Conflict, match=problem):
            work.context(known_red=known)
    context = work.context(known_red=(OLD,))
    Conductor(context).run()
    assert landed_titles(context) == ["Item it"]
    findings: Any = task_of(context, "bad.w2").inputs["findings"]
    assert "test_calc.py::test_add" in findings[0]["tests"]


REFUSED: dict[str, tuple[str, str]] = {
    "no check": ('[agents.a]\ncommand = ["a"]\n', "defines no check"),
    "no gate": ('[agents.a]\ncommand = ["a"]\n[[checks]]\nname = "t"\ncommand = ["t"]\ngate = false\n', "no check is required"),
    "no agent": ('[[checks]]\nname = "t"\ncommand = ["t"]\n', "worker needs a defined agent"),
    "unknown section": ("[runn]\n", "has no setting 'runn'"),
    "unknown key": ("[run]\nagentss = 3\n", "has no setting 'agentss'"),
    "sandbox": ('[run]\nsandbox = "fort"\n[agents.a]\ncommand = ["a"]\n', "sandbox is 'fort'"),
    "checks as tables": (
        '[agents.a]\ncommand = ["a"]\n[checks.tests]\ncommand = ["t"]\n',
        r"has \[checks.tests\], but checks must be a list",
    ),
    "checks as texts": ('checks = ["pytest"]\n', "checks in decklog.toml must be a list of tables"),
    "an agent that is no table": ('agents = {a = "claude"}\n', "agents.a in decklog.toml must be a table"),
    "a section that is no table": ("run = 1\n", "run in decklog.toml must be a table"),
    "number": ('[run]\nagents = 0\n[agents.a]\ncommand = ["a"]\n', "agents is 0"),
    "no toml": ("[run\n", "is not TOML"),
    "report": (
        '[agents.a]\ncommand = ["a"]\n[[checks]]\nname = "t"\ncommand = ["t"]\nreport = "junit"\n',
        r"the command of check t needs \{report\}",
    ),
    "twice": ('[agents.a]\ncommand = ["a"]\n' + '[[checks]]\nname = "t"\ncommand = ["t"]\n' * 2, "the same name"),
    "command": ('[agents.a]\ncommand = ["a"]\n[[checks]]\nname = "t"\ncommand = "t"\n', "command has to be a list"),
    "money": (
        '[agents.a]\ncommand = ["a"]\n[[checks]]\nname = "t"\ncommand = ["t"]\n[budget]\nrun_usd = "x"\n',
        "run_usd is 'x'",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_settings_that_are_wrong_are_refused_by_name(kind: str) -> None:
    text, message = REFUSED[kind]
    with pytest.raises(Invalid, match=message):
        settings.parse(text.encode())


PLANS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no goal": ({"goal": " ", "items": [{"name": "a"}]}, Invalid, "needs a goal"),
    "control": ({"goal": "a\x00b", "items": [{"name": "a"}]}, Invalid, "control characters"),
    "no items": ({"goal": "g", "items": []}, Invalid, "1 to 500 items"),
    "name": ({"goal": "g", "items": [{"name": "A b"}]}, Invalid, "small letters"),
    "twice": ({"goal": "g", "items": [{"name": "a"}, {"name": "a"}]}, Invalid, "two items are called a"),
    "unknown need": ({"goal": "g", "items": [{"name": "a", "needs": ["b"]}]}, Invalid, "which is not in the plan"),
    "circle": ({"goal": "g", "items": [{"name": "a", "needs": ["b"]}, {"name": "b", "needs": ["a"]}]}, Conflict, "circle"),
    "outside": ({"goal": "g", "items": [{"name": "a", "paths": ["../x"]}]}, Invalid, "outside of the repository"),
    "key": ({"goal": "g", "items": [{"name": "a", "path": []}]}, Invalid, "has no setting 'path'"),
    "list": ({"goal": "g", "items": [{"name": "a", "needs": "b"}]}, Invalid, "a list of texts"),
    "more": ({"goal": "g", "items": [{"name": "a"}], "x": 1}, Invalid, "must have only a goal and items"),
    "half of a sign": ({"goal": "a\ud800", "items": [{"name": "a"}]}, Invalid, "control characters"),
    "a path that is no text": ({"goal": "g", "items": [{"name": "a", "paths": [1]}]}, Invalid, "a list of texts"),
    "a title that is no text": ({"goal": "g", "items": [{"name": "a", "title": {}}]}, Invalid, "has to be a text"),
    "a priority without end": ({"goal": "g", "items": [{"name": "a", "priority": 1e308}]}, Invalid, "a whole number"),
}


@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_that_could_not_be_worked_through_is_refused_by_name(kind: str) -> None:
    table, error, message = PLANS[kind]
    with pytest.raises(error, match=message):
        plan.parse(json.dumps(table).encode(), is_json=True)


def test_a_plan_is_toml_or_json(checked: Path) -> None:
    text = 'goal = "g"\n[[items]]\nname = "a"\nneeds = ["b"]\n[[items]]\nname = "b"\n'
    assert [one.name for one in plan.parse(text.encode(), is_json=False).items] == ["a", "b"]
    with pytest.raises(Invalid, match="not JSON"):
        plan.parse(text.encode(), is_json=True)


def test_a_repository_without_settings_is_told_what_to_write(sqlite_target: str, folder: Path) -> None:
    with Decklog.open(sqlite_target) as log:
        with pytest.raises(NotFound, match=r"has no decklog\.toml"):
            Work(log, folder, work_item("it", TRIPLE)).context()
        assert log.runs.find() == []
