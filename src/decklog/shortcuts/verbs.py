"""The shortcut verbs. The command line takes its options and help from their signatures and docstrings."""

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog import ReasoningPhase
from decklog.agents.caller import StoredClaim
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
_FINAL_REASONS = ("run_over", "all_done", "no_run")
_PATIENCE_SECONDS = 10.0
_ANSWER_LIMIT = 5
_LESSON_FIELDS = ("body", "topic", "sightings", "why", "contradicted_by", "outdated_by")


def next_(
    caller: Caller,
    *,
    wait: float = 0.0,
    role: str | None = None,
    tag: str | None = None,
    group: str | None = None,
    lease: float = LEASE_SECONDS,
) -> ShortcutAnswer:
    """Show the task you have, its lease renewed, or get the next one.

    Prints its id, title, objective and criteria, the paths that you may write, and the answers to your questions.
    Without a task, it prints the reason: exit 7 if one may come, 0 if all are done.
    A worker that was killed and restarts under the same name gets its task back.
    """
    if caller.has_assigned_task:
        return _renew_assigned_task(caller, lease)
    with caller.claims.locked(wait + _PATIENCE_SECONDS):
        task, notes = _renew_task(caller, lease)
        if task is not None:
            return task_answer(task, _find_answers(caller, task), notes)
        wanted: dict[str, Any] = {"role": role, "tag": tag, "group_id": group}
        claim = caller.log.tasks.claim(caller.run_id, worker=caller.worker.name, lease_seconds=lease, wait_seconds=wait, **wanted)
        if claim is not None:
            caller.store_claim(caller.build_claim(claim.task, claim.task.fence, lease))
            return task_answer(claim.task, _find_answers(caller, claim.task), notes)
    return _no_task(caller, wanted, notes)


def _renew_assigned_task(caller: Caller, lease: float) -> ShortcutAnswer:
    """Return the task that was claimed for the worker. Once it is done, there is no other."""
    claim = caller.require_claim()
    try:
        task = caller.log.tasks.extend(claim.task_id, fence=claim.fence, lease_seconds=lease)
    except LeaseLost as problem:
        if problem.details["state"] != "done":
            raise
        message, hint = f"task {claim.task_id} is done", "Nothing else was given to you."
        reason: ClaimExplanation = {"code": "task_done", "message": message, "hint": hint}
        return ShortcutAnswer(f"Nothing: {message}. {hint}", None, reason=reason)
    return task_answer(task, list(caller.log.approvals.find(task.run_id, task_id=task.id, limit=_ANSWER_LIMIT)))


def _renew_task(caller: Caller, lease: float) -> "tuple[Task | None, list[str]]":
    """Renew the worker's claim and return its task. Notes report a lost task, or one that is back after a restart."""
    caller.claims.remove_ended()
    if (claim := caller.load_claim()) is None:
        return None, []
    notes = [f"back: {caller.worker.name} had this task before"] if caller.claims.is_from_ended_process else []
    try:
        task = caller.log.tasks.extend(claim.task_id, fence=claim.fence, lease_seconds=lease)
    except (LeaseLost, NotFound) as problem:
        caller.store_end(claim)
        return None, [f"lost: {problem.message}"]
    renewed = caller.build_claim(task, task.fence, lease)
    renewed.asked = claim.asked
    caller.store_claim(renewed)
    return task, notes


def _find_answers(caller: Caller, task: "Task") -> "list[Approval]":
    """Return the questions about a task. A task on its first attempt has none from earlier workers."""
    claim = caller.load_claim()
    if task.attempts <= 1 and (claim is None or not claim.asked):
        return []
    return list(caller.log.approvals.find(task.run_id, task_id=task.id, limit=_ANSWER_LIMIT))


def _no_task(caller: Caller, wanted: dict[str, Any], notes: list[str]) -> ShortcutAnswer:
    reason = _explain_no_task(caller, wanted)
    if reason["code"] in ("later", "scheduled", "all_taken", "just_now"):
        reason["hint"] = f"Wait for one: {caller.surface.call('next', wait=60)}"
    code = DONE if reason["code"] in _FINAL_REASONS else PENDING
    return ShortcutAnswer(f"Nothing: {reason['message']}. {reason['hint']}", None, code=code, reason=reason, notes=notes)


def _explain_no_task(caller: Caller, wanted: dict[str, Any]) -> "ClaimExplanation":
    """Return why there is no task: in the named run, or in the first active run that may still offer one."""
    if caller.run_id is not None:
        return caller.log.tasks.why_none(caller.run_id, worker=caller.worker.name, **wanted)
    reasons = [caller.log.tasks.why_none(run_id, worker=caller.worker.name, **wanted) for run_id in caller.active_runs()]
    may_come = [reason for reason in reasons if reason["code"] not in _FINAL_REASONS]
    return (may_come or reasons or [caller.log.tasks.why_none(None, worker=caller.worker.name, **wanted)])[0]


def done(caller: Caller, what: str | None = None, *, evidence: list[str] | None = None) -> ShortcutAnswer:
    """End your task as done. Say what was done; evidence names files, commands or links that show it."""
    claim = caller.require_claim(or_ended=True)
    result = {"evidence": evidence} if evidence else None
    with caller.acting(claim):
        try:
            task = caller.log.tasks.finish(claim.task_id, fence=claim.fence, summary=what, result=result)
        except LeaseLost as problem:
            raise problem if claim.is_open else NotFound(f"{caller.worker.name} has no task", hint=caller.next_hint) from None
    return _end_answer(caller, claim, task)


def fail(caller: Caller, why: str, *, after: float = 0.0) -> ShortcutAnswer:
    """End this attempt of your task as failed; it can be claimed again until its attempts are used up.

    If another attempt would fail for the same reason, use `block`.
    """
    claim = caller.require_claim()
    with caller.acting(claim):
        task = caller.log.tasks.fail(claim.task_id, fence=claim.fence, summary=why, blocker=why, retry_after_seconds=after)
    return _end_answer(caller, claim, task)


def block(caller: Caller, why: str) -> ShortcutAnswer:
    """Block your task until something outside changes; a person or another worker resumes it."""
    claim = caller.require_claim()
    with caller.acting(claim):
        task = caller.log.tasks.block(claim.task_id, fence=claim.fence, blocker=why)
    return _end_answer(caller, claim, task)


def _end_answer(caller: Caller, claim: StoredClaim, task: "Task") -> ShortcutAnswer:
    caller.store_end(claim)
    left = f", try {task.failures} of {task.max_attempts}" if task.outcome == "failed" else ""
    already = " already" if task.already else ""
    text = f"{task.outcome}{already}: {task.id}  {one_line(task.title)} ({task.state}{left})"
    data = {"task": task.id, "outcome": task.outcome, "state": task.state.value}
    return ShortcutAnswer(text, {**data, "already": True} if task.already else data, warnings=task.warnings)


def note(caller: Caller, text: str, *, phase: ReasoningPhase | None = None, key: str | None = None) -> ShortcutAnswer:
    """Record what you think or found, on your task; `-` reads it from stdin."""
    from decklog import EntryKind

    if not text.strip():
        raise Invalid("a note needs a text", field="text")
    claim = caller.current_claim()
    run_id = caller.require_run(claim)
    with caller.acting(claim):
        entry = caller.log.journal.append(run_id, text, kind=EntryKind.REASONING, phase=phase, key=key)
        if claim is not None:
            caller.renew_lease(claim)
    return ShortcutAnswer(f"noted: {entry.id}", {"entry": entry.id})


def ask(
    caller: Caller,
    question: str,
    *,
    about: bytes | None = None,
    options: list[str] | None = None,
    of: str | None = None,
    wait: float = 0.0,
) -> ShortcutAnswer:
    """Ask a person. Exit 0 granted, 6 denied, 7 no answer yet.

    Ask the same question again to get its answer. `next` shows it too.
    With a file (its name, or - for stdin), the answer applies to exactly that content.
    """
    claim = caller.current_claim()
    task_id = None if claim is None else claim.task_id
    subject, content = None, question.encode(errors="surrogateescape") if about is None else about
    if about and caller.surface.reads_files and b"\0" not in about and os.path.isfile(about):
        subject, content = os.fsdecode(about), Path(os.fsdecode(about)).read_bytes()
    # The same words about the same content are the same question.
    words = "\0".join([question, *(options or ())]).encode(errors="surrogateescape")
    digest = sha256(words + b"\0" + content).hexdigest()
    try:
        text: str | bytes = content.decode()
    except UnicodeDecodeError:
        text = content
    with caller.acting(claim):
        approval = caller.log.approvals.ask(
            caller.require_run(claim),
            question,
            by=caller.worker.name,
            asked_of=of,
            task_id=task_id,
            key=f"ask:{task_id or caller.worker.name}:{digest[:16]}",
            about=text,
            subject=subject,
            payload={"options": options} if options else None,
        )
        if claim is not None:
            claim.asked = True
            caller.store_claim(claim)
    if approval.state == "open" and wait > 0:
        with suppress(StillPending):
            approval = caller.log.approvals.wait(approval.id, wait)
    code = {"open": PENDING, "granted": DONE}.get(approval.state.value, REFUSED)
    option = caller.surface.option("wait", "SECONDS")
    later = f"; ask the same question again to get the answer, with {option} to wait" if code == PENDING else ""
    return ShortcutAnswer(f"{approval.id}: {describe_approval(approval)}{later}", approval_data(approval), code=code)


def spend(
    caller: Caller,
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
        wanted = f"say tokens ({caller.surface.option('in', 'N')}, …) or dollars ({caller.surface.option('cost', 'X')})"
        raise Invalid(f"nothing was spent: {wanted}", field="in", hint="See the cost: decklog now")
    claim = caller.current_claim()
    with caller.acting(claim):
        charge = caller.log.ledger.charge(
            model,
            input_tokens=in_,
            output_tokens=out,
            cache_read_tokens=cache_read,
            cache_create_tokens=cache_write,
            cost_microdollars=cost_microdollars,
            run_id=caller.find_run(claim),
            enforce=False,
            key=key,
        )

    known = charge.cost_microdollars is not None
    amount = dollars(charge.cost_microdollars or 0, exact=True) if known else "an unknown price"
    over = "; a budget is overdrawn: stop, and ask" if charge.overdrew else ""
    data: dict[str, Any] = {"charge": charge.id, "tokens": charge.tokens, "cost_microdollars": charge.cost_microdollars}
    text = f"spent: {amount}, {charge.tokens} tokens of {charge.model}{over}"
    return ShortcutAnswer(text, {**data, "overdrew": bool(charge.overdrew)}, code=REFUSED if charge.overdrew else DONE)


def recall(caller: Caller, words: tuple[str, ...], *, topic: str | None = None, limit: int = 3) -> ShortcutAnswer:
    """Find lessons that fit your next step."""
    claim = caller.current_claim()
    with caller.acting(claim):
        hits = caller.log.memory.recall(" ".join(words), topic=topic, limit=limit)
    lines = [
        f"{hit.id}  {one_line(hit.body)} ({'; '.join([f'{hit.topic}, seen {hit.sightings}x', *hit.cautions])})" for hit in hits
    ]
    data = [{"lesson": hit.id, **{name: getattr(hit, name) for name in _LESSON_FIELDS}} for hit in hits]
    return ShortcutAnswer("\n".join(lines) or "No matching lessons.", data, warnings=hits.warnings)


def remember(caller: Caller, lesson: str, *, topic: str = "task_outcomes", key: str | None = None) -> ShortcutAnswer:
    """Store a lesson for similar work. Record verified facts only."""
    claim = caller.current_claim()
    task_id = None if claim is None else claim.task_id
    with caller.acting(claim):
        stored = caller.log.memory.remember(
            topic, lesson, run_id=caller.find_run(claim), task_id=task_id, source_id=caller.worker.name, key=key
        )
    seen = f", seen {stored.sightings}x" if stored.sightings > 1 else ""
    return ShortcutAnswer(
        f"remembered: {stored.id} ({stored.topic}{seen})",
        {"lesson": stored.id, "sightings": stored.sightings},
        warnings=stored.warnings,
    )


def plan(caller: Caller, titles: tuple[str, ...] = (), *, in_order: bool = False, key: str | None = None) -> ShortcutAnswer:
    """Add tasks to the run, one for each title; without any, show the plan.

    `-` reads them from stdin: a task a line, with more about it on indented lines below, or a JSON list.
    """
    from decklog.shortcuts.planning import add_tasks, parse_tasks, show_plan

    run_id = caller.require_run(caller.current_claim())
    return (
        add_tasks(caller, run_id, parse_tasks(caller, titles), in_order=in_order, key=key)
        if titles
        else show_plan(caller, run_id)
    )


def prime(caller: Caller) -> ShortcutAnswer:
    """Print your situation in at most 1,500 tokens: your task, messages, budgets and lessons."""
    from decklog.agents.prime import Prime

    claim = caller.load_claim()
    task_id = claim.task_id if claim is not None else None
    text = Prime(caller.log, worker=caller.worker.name, run_id=caller.find_run(claim), task_id=task_id).text()
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
