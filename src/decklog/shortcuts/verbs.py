"""The shortcut verbs. The command line takes its options and help from their signatures and docstrings."""

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog import ReasoningPhase
from decklog.agents.caller import Remembered
from decklog.core.display import dollars, one_line
from decklog.core.errors import Invalid, LeaseLost, NotFound, StillPending
from decklog.shortcuts.caller import (
    DONE,
    LEASE_SECONDS,
    PENDING,
    REFUSED,
    Caller,
    ShortcutAnswer,
    approval_data,
    describe_approval,
    task_answer,
)

if TYPE_CHECKING:
    from decklog import Approval, ClaimExplanation, Task

# No task will ever be ready; all other reasons may pass.
_OVER = ("run_over", "all_done", "no_run")
_PATIENCE_SECONDS = 10.0
_ANSWERS = 5
_OF_A_LESSON = ("body", "topic", "sightings", "why", "contradicted_by", "outdated_by")


def next_(
    me: Caller,
    *,
    wait: float = 0.0,
    role: str | None = None,
    tag: str | None = None,
    group: str | None = None,
    lease: float = LEASE_SECONDS,
) -> ShortcutAnswer:
    """Show the task you have, its lease renewed, or get the next one.

    Prints its id and title, what is to be done, when it is done, where you may write, and what was answered to your questions.
    When there is none, the reason: exit 7 if something may come, 0 if all is over.
    A worker that was killed and starts again under its name has its task back.
    """
    if me.is_given_a_task:
        return _given(me, lease)
    with me.claims.alone(wait + _PATIENCE_SECONDS):
        task, notes = _go_on(me, lease)
        if task is not None:
            return task_answer(task, _answers(me, task), notes)
        wanted: dict[str, Any] = {"role": role, "tag": tag, "group_id": group}
        claim = me.log.tasks.claim(me.run_id, worker=me.worker.name, lease_seconds=lease, wait_seconds=wait, **wanted)
        if claim is not None:
            me.keep(me.of_task(claim.task, claim.task.fence, lease))
            return task_answer(claim.task, _answers(me, claim.task), notes)
    return _none(me, wanted, notes)


def _given(me: Caller, lease: float) -> ShortcutAnswer:
    """Return the task that was claimed for the worker. Once it is done, there is no other."""
    claim = me.must_have()
    try:
        task = me.log.tasks.extend(claim.task_id, fence=claim.fence, lease_seconds=lease)
    except LeaseLost as problem:
        if problem.details["state"] != "done":
            raise
        message, hint = f"task {claim.task_id} is done", "Nothing else was given to you."
        reason: ClaimExplanation = {"code": "task_done", "message": message, "hint": hint}
        return ShortcutAnswer(f"Nothing: {message}. {hint}", None, reason=reason)
    return task_answer(task, list(me.log.approvals.find(task.run_id, task_id=task.id, limit=_ANSWERS)))


def _go_on(me: Caller, lease: float) -> "tuple[Task | None, list[str]]":
    """Renew the worker's claim and return its task. Notes report a lost task, or one that is back after a restart."""
    me.claims.clear_ended()
    if (claim := me.claim()) is None:
        return None, []
    notes = [f"back: {me.worker.name} had this task before"] if me.claims.is_from_ended_process else []
    try:
        task = me.log.tasks.extend(claim.task_id, fence=claim.fence, lease_seconds=lease)
    except (LeaseLost, NotFound) as problem:
        me.end(claim)
        return None, [f"lost: {problem.message}"]
    renewed = me.of_task(task, task.fence, lease)
    renewed.asked = claim.asked
    me.keep(renewed)
    return task, notes


def _answers(me: Caller, task: "Task") -> "list[Approval]":
    """Return the questions about a task. A task on its first attempt has none from earlier workers."""
    claim = me.claim()
    if task.attempts <= 1 and (claim is None or not claim.asked):
        return []
    return list(me.log.approvals.find(task.run_id, task_id=task.id, limit=_ANSWERS))


def _none(me: Caller, wanted: dict[str, Any], notes: list[str]) -> ShortcutAnswer:
    reason = _reason(me, wanted)
    if reason["code"] in ("later", "scheduled", "all_taken", "just_now"):
        reason["hint"] = f"Wait for one: {me.surface.call('next', wait=60)}"
    code = DONE if reason["code"] in _OVER else PENDING
    return ShortcutAnswer(f"Nothing: {reason['message']}. {reason['hint']}", None, code=code, reason=reason, notes=notes)


def _reason(me: Caller, wanted: dict[str, Any]) -> "ClaimExplanation":
    """Return why there is no task: in the named run, or in the first active run that may still offer one."""
    if me.run_id is not None:
        return me.log.tasks.why_none(me.run_id, worker=me.worker.name, **wanted)
    reasons = [me.log.tasks.why_none(run_id, worker=me.worker.name, **wanted) for run_id in me.under_way()]
    may_come = [reason for reason in reasons if reason["code"] not in _OVER]
    return (may_come or reasons or [me.log.tasks.why_none(None, worker=me.worker.name, **wanted)])[0]


def done(me: Caller, what: str | None = None, *, evidence: list[str] | None = None) -> ShortcutAnswer:
    """End your task as done. Say what was done; evidence names files, commands or links that show it."""
    claim = me.must_have(or_ended=True)
    result = {"evidence": evidence} if evidence else None
    with me.acting(claim):
        try:
            task = me.log.tasks.finish(claim.task_id, fence=claim.fence, summary=what, result=result)
        except LeaseLost as problem:
            raise problem if claim.is_open else NotFound(f"{me.worker.name} has no task", hint=me.get_one) from None
    return _ended(me, claim, task)


def fail(me: Caller, why: str, *, after: float = 0.0) -> ShortcutAnswer:
    """End this try of your task as failed; it goes back to be tried again until its tries are used.

    When another try would not help before something changes, use `block`.
    """
    claim = me.must_have()
    with me.acting(claim):
        task = me.log.tasks.fail(claim.task_id, fence=claim.fence, summary=why, blocker=why, retry_after_seconds=after)
    return _ended(me, claim, task)


def block(me: Caller, why: str) -> ShortcutAnswer:
    """Block your task until something outside changes; a person or another worker resumes it."""
    claim = me.must_have()
    with me.acting(claim):
        task = me.log.tasks.block(claim.task_id, fence=claim.fence, blocker=why)
    return _ended(me, claim, task)


def _ended(me: Caller, claim: Remembered, task: "Task") -> ShortcutAnswer:
    me.end(claim)
    left = f", try {task.failures} of {task.max_attempts}" if task.outcome == "failed" else ""
    already = " already" if task.already else ""
    text = f"{task.outcome}{already}: {task.id}  {one_line(task.title)} ({task.state}{left})"
    data = {"task": task.id, "outcome": task.outcome, "state": task.state.value}
    return ShortcutAnswer(text, {**data, "already": True} if task.already else data, warnings=task.warnings)


def note(me: Caller, text: str, *, phase: ReasoningPhase | None = None, key: str | None = None) -> ShortcutAnswer:
    """Write down what you think or found, on your task; `-` reads it from stdin."""
    from decklog import EntryKind

    if not text.strip():
        raise Invalid("a note needs words", field="text")
    claim = me.claim_here()
    run_id = me.run(claim)
    with me.acting(claim):
        entry = me.log.journal.append(run_id, text, kind=EntryKind.REASONING, phase=phase, key=key)
        if claim is not None:
            me.renew(claim)
    return ShortcutAnswer(f"noted: {entry.id}", {"entry": entry.id})


def ask(
    me: Caller,
    question: str,
    *,
    about: bytes | None = None,
    options: list[str] | None = None,
    of: str | None = None,
    wait: float = 0.0,
) -> ShortcutAnswer:
    """Ask a person. Exit 0 granted, 6 denied, 7 no answer yet.

    The same question again is the same question: it hears the answer. `next` shows it too.
    About a file (its name, or - for stdin), the answer is for exactly that content.
    """
    claim = me.claim_here()
    task_id = None if claim is None else claim.task_id
    subject, content = None, question.encode(errors="surrogateescape") if about is None else about
    if about and me.surface.reads_files and b"\0" not in about and os.path.isfile(about):
        subject, content = os.fsdecode(about), Path(os.fsdecode(about)).read_bytes()
    # The same words about the same content are the same question.
    words = "\0".join([question, *(options or ())]).encode(errors="surrogateescape")
    digest = sha256(words + b"\0" + content).hexdigest()
    try:
        text: str | bytes = content.decode()
    except UnicodeDecodeError:
        text = content
    with me.acting(claim):
        approval = me.log.approvals.ask(
            me.run(claim),
            question,
            by=me.worker.name,
            asked_of=of,
            task_id=task_id,
            key=f"ask:{task_id or me.worker.name}:{digest[:16]}",
            about=text,
            subject=subject,
            payload={"options": options} if options else None,
        )
        if claim is not None:
            claim.asked = True
            me.keep(claim)
    if approval.state == "open" and wait > 0:
        with suppress(StillPending):
            approval = me.log.approvals.wait(approval.id, wait)
    code = {"open": PENDING, "granted": DONE}.get(approval.state.value, REFUSED)
    option = me.surface.option("wait", "SECONDS")
    later = f"; ask the same again to hear the answer, with {option} to wait" if code == PENDING else ""
    return ShortcutAnswer(f"{approval.id}: {describe_approval(approval)}{later}", approval_data(approval), code=code)


def spend(
    me: Caller,
    model: str,
    *,
    in_: int = 0,
    out: int = 0,
    cache_read: int = 0,
    cache_write: int = 0,
    cost_microdollars: int | None = None,
    key: str | None = None,
) -> ShortcutAnswer:
    """Record the tokens of a model call, and its cost unless the price list knows it.

    The money is spent already, so the call is recorded even over budget; exit 6 when a budget is overdrawn: stop, and ask.
    """
    if cost_microdollars is None and not (in_ or out or cache_read or cache_write):
        # Most likely the caller wants to see the cost of a run.
        wanted = f"say tokens ({me.surface.option('in', 'N')}, …) or dollars ({me.surface.option('cost', 'X')})"
        raise Invalid(f"nothing was spent: {wanted}", field="in", hint="See the cost: decklog now")
    claim = me.claim_here()
    with me.acting(claim):
        charge = me.log.ledger.charge(
            model,
            input_tokens=in_,
            output_tokens=out,
            cache_read_tokens=cache_read,
            cache_create_tokens=cache_write,
            cost_microdollars=cost_microdollars,
            run_id=me.find_run(claim),
            enforce=False,
            key=key,
        )

    known = charge.cost_microdollars is not None
    amount = dollars(charge.cost_microdollars or 0, exact=True) if known else "an unknown price"
    over = "; a budget is overdrawn: stop, and ask" if charge.overdrew else ""
    data: dict[str, Any] = {"charge": charge.id, "tokens": charge.tokens, "cost_microdollars": charge.cost_microdollars}
    text = f"spent: {amount}, {charge.tokens} tokens of {charge.model}{over}"
    return ShortcutAnswer(text, {**data, "overdrew": bool(charge.overdrew)}, code=REFUSED if charge.overdrew else DONE)


def recall(me: Caller, words: tuple[str, ...], *, topic: str | None = None, limit: int = 3) -> ShortcutAnswer:
    """Look for lessons that fit what you are about to do."""
    claim = me.claim_here()
    with me.acting(claim):
        hits = me.log.memory.recall(" ".join(words), topic=topic, limit=limit)
    lines = [
        f"{hit.id}  {one_line(hit.body)} ({'; '.join([f'{hit.topic}, seen {hit.sightings}x', *hit.cautions])})" for hit in hits
    ]
    data = [{"lesson": hit.id, **{name: getattr(hit, name) for name in _OF_A_LESSON}} for hit in hits]
    return ShortcutAnswer("\n".join(lines) or "Nothing fits.", data, warnings=hits.warnings)


def remember(me: Caller, lesson: str, *, topic: str = "task_outcomes", key: str | None = None) -> ShortcutAnswer:
    """Keep a lesson for later work like this. Record verified facts only."""
    claim = me.claim_here()
    task_id = None if claim is None else claim.task_id
    with me.acting(claim):
        kept = me.log.memory.remember(
            topic, lesson, run_id=me.find_run(claim), task_id=task_id, source_id=me.worker.name, key=key
        )
    seen = f", seen {kept.sightings}x" if kept.sightings > 1 else ""
    return ShortcutAnswer(
        f"remembered: {kept.id} ({kept.topic}{seen})", {"lesson": kept.id, "sightings": kept.sightings}, warnings=kept.warnings
    )


def plan(me: Caller, titles: tuple[str, ...] = (), *, in_order: bool = False, key: str | None = None) -> ShortcutAnswer:
    """Add tasks to the run, one for each title; without any, show the plan.

    `-` reads them from stdin: a task a line, with more about it on indented lines below, or a JSON list.
    """
    from decklog.shortcuts.planning import planned, standing, tasks_of

    run_id = me.run(me.claim_here())
    return planned(me, run_id, tasks_of(me, titles), in_order=in_order, key=key) if titles else standing(me, run_id)


def prime(me: Caller) -> ShortcutAnswer:
    """Return where you stand, in at most 1,500 tokens: your task, what waits for you, what may be spent, what was learned."""
    from decklog.agents.prime import Prime

    claim = me.claim()
    task_id = claim.task_id if claim is not None else None
    text = Prime(me.log, worker=me.worker.name, run_id=me.find_run(claim), task_id=task_id).text()
    return ShortcutAnswer(text.rstrip("\n"), {"text": text})


VERBS: dict[str, Callable[..., ShortcutAnswer]] = {
    "next": next_,
    "done": done,
    "fail": fail,
    "block": block,
    "note": note,
    "ask": ask,
    "spend": spend,
    "recall": recall,
    "remember": remember,
    "plan": plan,
    "prime": prime,
}
