"""A small agent system that awaits, with nothing but `import decklog`: run, and checked by mypy in strict mode."""

import asyncio
import sys
from collections.abc import AsyncIterator

import decklog


async def plan(log: decklog.AsyncDecklog) -> decklog.Run:
    """Start a run with a chain of tasks, all of it or nothing."""
    async with log.transaction():
        run: decklog.Run = await log.runs.start("Teach the parser to read trailing commas", run_id="commas")
        task: decklog.Task = await log.tasks.add(run.id, "Change the lexer", priority=70, tags=["parser"])
        await log.tasks.add(run.id, "Change the parser", depends_on=[task.id])
    return run


async def work(log: decklog.AsyncDecklog, run: decklog.Run, worker: str) -> int:
    """Do what is ready until nothing is left; give how much was done."""
    done = 0
    while True:
        claim: decklog.AsyncClaim | None = await log.tasks.claim(run.id, worker=worker, wait_seconds=0.2)
        if claim is None:
            return done
        with log.acting("developer", agent_id=worker):
            async with claim:
                entry: decklog.Entry = await log.journal.append(run.id, "thinking", kind=decklog.EntryKind.REASONING)
                lost: decklog.LeaseLost | None = claim.lost
                assert lost is None
                await claim.extend(stage=entry.id)
        state: decklog.TaskState = claim.task.state
        assert state is decklog.TaskState.DONE
        done += 1


async def main(target: str) -> None:
    async with decklog.AsyncDecklog.open(target) as log:
        run = await plan(log)
        done: list[int] = await asyncio.gather(*(work(log, run, name) for name in ("ada", "bo")))
        tail: AsyncIterator[decklog.Entry] = log.journal.tail(run.id, follow=False)
        numbers: list[int] = [entry.seq async for entry in tail]
        tasks: decklog.Page[decklog.Task] = await log.tasks.find(run.id)
        before: decklog.Task = await log.journal.at(decklog.Task, tasks[0].id, "2")
        verification: decklog.Verification = await log.journal.verify()
        print(sum(done), numbers == list(range(1, len(numbers) + 1)), before.state.value, verification.ok)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
