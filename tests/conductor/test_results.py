"""What has come of a run is brought into a branch by a person, found again without a log, and cleaned up once it is safe."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from decklog import Conflict, Decklog, ManualClock, NotFound
from decklog.conductor import landing, starting
from decklog.conductor.cleaning import Cleaner, CleanupResult, kept
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.conductor.git.repository import Repository
from decklog.conductor.plan import FILE as PLAN_FILE
from decklog.conductor.starting import RunRequest
from decklog.core.errors import Denied
from tests.conductor.plans import NO_STRATEGIST, SETTINGS, TRIPLE, Work, settle, target_of, work_item
from tests.conductor.repositories import everything, git, write
from tests.conductor.scripts import script

PASSWORD = "correct horse " + "battery staple"


def landed(context: RunContext, folder: Path, *, password: str | None = None, branch: str | None = None) -> landing.LandingPlan:
    found = landing.prepare(context, branch)
    if not found.is_done:
        landing.examine(context, found)
        proof = context.log.proving(password=password) if password else nullcontext()
        landing.land(context, found, by="ana", proof=proof)
    return found


@pytest.mark.slow
def test_a_person_lands_a_run_on_a_branch_and_nothing_else_is_touched(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE)).run()
    write(checked, {"mine.txt": "untracked\n", "notes.txt": "changed\n"})
    before = everything(checked)
    with pytest.raises(Conflict, match=r"uncommitted changes: notes\.txt"):
        landed(context, checked)
    with pytest.raises(NotFound, match="no branch 'nowhere'"):
        landed(context, checked, branch="nowhere")
    assert everything(checked) == before
    git(checked, "branch", "other", "main~0")
    assert landed(context, checked, branch="other").worktree is None
    assert git(checked, "rev-parse", "other") == git(checked, "rev-parse", target_of(context))
    git(checked, "checkout", "-q", "notes.txt")
    assert landed(context, checked).branch == "main"
    assert "def triple" in (checked / "calc.py").read_text()
    assert (checked / "mine.txt").read_text() == "untracked\n"
    assert landed(context, checked).is_done
    approvals = log.approvals.find(context.run_id)
    assert [(one.state, one.uses, one.decided_by) for one in approvals] == [("granted", 1, "ana")] * 2
    assert log.effects.open(context.run_id) == []


@pytest.mark.slow
def test_a_branch_that_went_on_gets_a_merge_that_is_checked_or_is_left_alone(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE)).run()
    first = git(checked, "rev-parse", "HEAD")
    write(checked, {"calc.py": "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return 2 * a\n"})
    git(checked, "commit", "-q", "-a", "-m", "Went on")
    with pytest.raises(Conflict, match=r"conflicts with the run: calc\.py"):
        landed(context, checked)
    git(checked, "reset", "-q", "--hard", first)
    write(checked, {"tests/test_more.py": "def test_no():\n    assert False\n"})
    git(checked, "add", "-A")
    git(checked, "commit", "-q", "-m", "Red")
    with pytest.raises(Conflict, match="to land on main fails: tests"):
        landed(context, checked)
    git(checked, "reset", "-q", "--hard", first)
    write(checked, {"notes.txt": "gone on\n"})
    git(checked, "commit", "-q", "-a", "-m", "Went on")
    assert landed(context, checked).is_merge
    assert (checked / "notes.txt").read_text() == "gone on\n"
    assert "def triple" in (checked / "calc.py").read_text()
    assert len(git(checked, "log", "-1", "--format=%P").split()) == 2


@pytest.mark.slow
def test_where_an_owner_is_bound_landing_takes_the_owners_proof(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE)).run()
    log.trust.bind("ana", "cli", password=PASSWORD)
    first = git(checked, "rev-parse", "main")
    with pytest.raises(Denied):
        landed(context, checked)
    assert git(checked, "rev-parse", "main") == first
    assert log.approvals.find(context.run_id, state="open") == []  # type: ignore[arg-type]
    landed(context, checked, password=PASSWORD)
    assert git(checked, "rev-parse", "main") == git(checked, "rev-parse", target_of(context))
    assert log.journal.verify(context.run_id).ok


@pytest.mark.slow
def test_a_yes_to_landing_serves_exactly_what_was_asked_about(log: Decklog, checked: Path) -> None:
    context = Work(log, checked, work_item("triple", TRIPLE)).run()
    git(checked, "branch", "other", "main")
    git(checked, "checkout", "-q", "-b", "more")
    with (checked / "notes.txt").open("a") as file:
        file.write("!")
    git(checked, "commit", "-q", "-a", "-m", "One byte")
    git(checked, "checkout", "-q", "main")

    def land_late(*meanwhile: str) -> None:
        found = landing.prepare(context, "main")
        git(checked, *meanwhile)
        before = git(checked, "for-each-ref", "refs/heads")
        with pytest.raises(Conflict, match="main has moved meanwhile"):
            landing.land(context, found, by="ana", proof=nullcontext())
        assert git(checked, "for-each-ref", "refs/heads") == before

    # Another branch where this one was, this one where none was, and one byte more in it.
    land_late("checkout", "-q", "other")
    land_late("checkout", "-q", "main")
    land_late("merge", "-q", "--ff-only", "more")
    first = log.approvals.find(context.run_id)
    assert landed(context, checked, branch="main").is_merge
    newest, *earlier = log.approvals.find(context.run_id)
    assert earlier == first, "none of the old ones served"
    assert newest.subject_digest not in {one.subject_digest for one in first}
    assert {(one.state, one.uses) for one in (newest, *earlier)} == {("granted", 1)}


def clean(log: Decklog, folder: Path, *, is_trial: bool = False, unlanded: bool = False) -> CleanupResult:
    state = folder.parent / "state"
    return Cleaner(log, Repository.find(folder, state), days=14, is_trial=is_trial, unlanded=unlanded).clean()


def run_refs(context: RunContext) -> dict[str, str]:
    """Return the refs of runs. `decklog prune` releases those of sessions."""
    refs = context.repository.refs("refs/decklog")
    return {name: commit for name, commit in refs.items() if not name.startswith("refs/decklog/sessions/")}


@pytest.mark.slow
def test_only_what_is_in_a_branch_goes_and_all_else_is_found_without_a_log(
    log: Decklog, checked: Path, clock: ManualClock
) -> None:
    settle(checked, SETTINGS + NO_STRATEGIST)
    context = Work(log, checked, work_item("triple", TRIPLE), work_item("half", ["write", "half.txt", "1\n"], ["exit", 3])).run()
    told = kept(context.repository)
    assert {(one.task.removeprefix(f"{context.run_id}."), one.what) for one in told} >= {("", "target"), ("triple.w1", "tip")}
    (half, _) = [one for one in told if one.task.endswith("half.w1") and one.what == "changed"]
    assert git(checked, "show", f"{half.commit}:half.txt") == "1"
    assert list(clean(log, checked).stays.values()) == ["its run is active"]
    log.runs.finish(context.run_id, status="cancelled", summary="enough")  # type: ignore[arg-type]
    assert list(clean(log, checked).stays.values()) == ["its run ended too recently"]
    clock.advance(days=15)
    assert clean(log, checked, is_trial=True).refs == []
    landed(context, checked)
    trial = clean(log, checked, is_trial=True)
    refs = run_refs(context)
    assert set(trial.refs) | set(trial.stays) == set(refs), "a trial removes nothing"
    assert {ref.split("/")[4] for ref in trial.stays} == {f"{context.run_id}.half.w1"}
    assert clean(log, checked).refs == trial.refs
    assert set(run_refs(context)) == set(trial.stays)
    assert not context.folder.exists()
    assert set(clean(log, checked, unlanded=True).refs) == set(trial.stays)
    assert run_refs(context) == {}


@pytest.mark.slow
def test_a_run_that_was_refused_and_what_a_strategist_left_are_cleaned_up_too(
    log: Decklog, checked: Path, clock: ManualClock
) -> None:
    goal = "Better\n" + script(["write", PLAN_FILE, json.dumps({"items": [work_item("triple", TRIPLE)]})])
    wanted = RunRequest(goal, goal.encode(), is_plan_asked=False)
    context = starting.begin(log, wanted, Repository.find(checked, checked.parent / "state"), say=lambda _: None)
    Conductor(context).run()
    landed(context, checked)
    log.runs.finish(context.run_id, summary="1 item landed")
    write(checked, {"calc.py": "def add(a, b):\n    return 0\n"})
    git(checked, "commit", "-q", "-a", "-m", "Red")
    with pytest.raises(Conflict, match="does not pass its own checks"):
        Work(log, checked, work_item("it")).run()
    clock.advance(days=15)
    cleaned = clean(log, checked)
    assert (len(cleaned.folders), cleaned.stays) == (2, {})
    assert run_refs(context) == {}
    assert [path.name for path in context.repository.state.iterdir() if path.name.startswith("run_")] == []
    assert clean(log, checked) == CleanupResult()
