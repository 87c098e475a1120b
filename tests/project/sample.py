"""A small agent system as a builder writes it, with nothing but `import decklog`: run, and checked by mypy in strict mode."""

import sys
from collections.abc import Iterator
from datetime import timedelta

import decklog

STEPS = ("Read the grammar", "Change the lexer", "Change the parser")
PRICE = 3_000
CEILING = 100_000


def plan(log: decklog.Decklog, goal: str) -> decklog.Run:
    """Start a run, with a budget and a chain of tasks."""
    run = log.runs.start(goal, run_id="commas", mode=decklog.RunMode.SIMPLE)
    log.budgets.set(decklog.BudgetScope.RUN, scope_id=run.id, limit_microdollars=CEILING)
    before: list[str] = []
    for title in STEPS:
        task: decklog.Task = log.tasks.add(run.id, title, depends_on=before, priority=70)
        before = [task.id]
    return run


def work(log: decklog.Decklog, run: decklog.Run, worker: str) -> int:
    """Do what is ready until nothing is left; give how much was done."""
    done = 0
    while (claim := log.tasks.claim(run.id, worker=worker, reserve_microdollars=PRICE)) is not None:
        with log.acting("developer", agent_id=worker), claim:
            one_step(log, run, claim.task)
        assert claim.task.state is decklog.TaskState.DONE
        done += 1
    return done


def one_step(log: decklog.Decklog, run: decklog.Run, task: decklog.Task) -> None:
    """Think, spend, and keep what came of it."""
    entry: decklog.Entry = log.journal.append(
        run.id, f"How to: {task.title}", kind=decklog.EntryKind.REASONING, phase=decklog.ReasoningPhase.APPROACH, task_id=task.id
    )
    charge: decklog.Charge = log.ledger.charge(
        "some-model", input_tokens=900, output_tokens=100, cost_microdollars=PRICE, run_id=run.id, task_id=task.id
    )
    document: dict[str, object] = {"at": task.title, "thought": entry.id, "spent": charge.cost_microdollars}
    log.states.save(run.id, "progress", document)


def approve(log: decklog.Decklog, run: decklog.Run) -> decklog.Approval:
    """Ask for a merge and let a person say yes."""
    approval = log.approvals.ask(run.id, "Merge it?", by="dev-1", about={"branch": "commas"}, expires_in_seconds=3600)
    open_ones: decklog.Page[decklog.Approval] = log.approvals.find(run_id=run.id, state=decklog.ApprovalState.OPEN)
    assert [one.id for one in open_ones] == [approval.id]
    return log.approvals.decide(approval.id, decklog.Verdict.GRANTED, by="ana", subject_digest=approval.subject_digest)


def all_tasks(log: decklog.Decklog, run: decklog.Run) -> Iterator[decklog.Task]:
    """Walk a list to its end, a page at a time."""
    after: str | None = None
    while True:
        page: decklog.Page[decklog.Task] = log.tasks.find(run.id, limit=2, after=after)
        yield from page
        if (after := page.next) is None:
            return


def overspend(log: decklog.Decklog, run: decklog.Run) -> str:
    """Try to spend more than was allowed; give the error's code."""
    try:
        log.ledger.charge("some-model", cost_microdollars=CEILING, run_id=run.id)
    except decklog.BudgetExceeded as refused:
        return refused.code
    except decklog.Conflict as problem:
        raise SystemExit(problem.message) from None
    return "nobody stopped it"


def words_and_types(log: decklog.Decklog, run: decklog.Run) -> None:
    """Use words for enumerations, typed new tasks, and the typed fields of a claim."""
    new: list[decklog.NewTask] = [{"title": "one", "priority": 60}]
    log.tasks.add_many(run.id, new)
    log.tasks.add_many(run.id, [{"title": "two", "tags": ["late"]}])
    log.tasks.find(run.id, state="pending")
    log.journal.append(run.id, "why", kind="reasoning", phase="approach")
    while claim := log.tasks.claim(run.id, worker="w"):
        fence: int = claim.fence
        log.tasks.release(claim.id, fence=fence, not_before=run.started_at + timedelta(days=365))


def main(target: str) -> None:
    with decklog.open(target) as log:
        run = plan(log, "Teach the parser to read trailing commas")
        done = work(log, run, "dev-1")
        approval = approve(log, run)
        titles = sorted(task.title for task in all_tasks(log, run))
        progress: decklog.StateVersion = log.states.get(run.id, "progress")
        entries: decklog.Page[decklog.Entry] = log.journal.find(run.id, kind=decklog.EntryKind.REASONING)
        code = overspend(log, run)
        words_and_types(log, run)
        run = log.runs.finish(run.id, summary=f"{done} steps")
        assert run.status is decklog.RunStatus.COMPLETED
        assert run.ended_at is not None
        assert run.ended_at - run.started_at < timedelta(minutes=5)
        verification: decklog.Verification = log.journal.verify()
        print(done, titles == sorted(STEPS), approval.state.value, progress.version, len(entries), code, verification.ok)


if __name__ == "__main__":
    main(sys.argv[1])
