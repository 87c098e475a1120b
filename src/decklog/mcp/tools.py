"""The tools: the shortcut verbs, and others for agents without a shell.

None of them approves, promotes or raises a budget. Operations that only the owner may use reject these calls.
"""

from pathlib import Path
from typing import Any

from decklog.core.display import DOLLAR, one_line
from decklog.core.errors import Invalid, NotFound
from decklog.mcp.identity import is_over_http
from decklog.mcp.prompts import situation
from decklog.mcp.tool import McpTool, add_cursor, decode_cursor, plain_record, shorten, shorten_texts
from decklog.shortcuts import verbs
from decklog.shortcuts.caller import DONE, PENDING, REFUSED, Caller, ShortcutAnswer

_LINE = 300
_SHOWN = 10
# Name of the uncommitted changes.
_WORKTREE = "worktree"


def ask(
    caller: Caller,
    question: str,
    about: str | None = None,
    options: list[str] | None = None,
    of: str | None = None,
    wait: float = 0.0,
) -> ShortcutAnswer:
    content = None if about is None else about.encode(errors="surrogateescape")
    return verbs.ask(caller, question, about=content, options=options, of=of, wait=wait)


def spend(
    caller: Caller,
    model: str,
    in_: int = 0,
    out: int = 0,
    cache_read: int = 0,
    cache_write: int = 0,
    cost: float | None = None,
    key: str | None = None,
) -> ShortcutAnswer:
    cost_microdollars = None if cost is None else round(cost * DOLLAR)
    tokens = {"in_": in_, "out": out, "cache_read": cache_read, "cache_write": cache_write}
    return verbs.spend(caller, model, **tokens, cost_microdollars=cost_microdollars, key=key)


def plan(
    caller: Caller, tasks: list[str | dict[str, Any]] | None = None, in_order: bool = False, key: str | None = None
) -> ShortcutAnswer:
    from decklog.shortcuts.planning import add_tasks, build_tasks, show_plan

    run_id = caller.require_run(caller.current_claim())
    if not tasks:
        return show_plan(caller, run_id)
    return _listed("tasks", add_tasks(caller, run_id, build_tasks(caller, tasks), in_order=in_order, key=key))


def recall(caller: Caller, words: str, topic: str | None = None, limit: int = 3) -> ShortcutAnswer:
    return _listed("lessons", verbs.recall(caller, (words,), topic=topic, limit=limit))


def checkpoint(
    caller: Caller, name: str | None = None, state: dict[str, Any] | None = None, key: str | None = None
) -> ShortcutAnswer:
    claim = caller.current_claim()
    with caller.acting(claim):
        saved = caller.log.states.checkpoint(caller.require_run(claim), name=name, payload=state, key=key)
    data = {"checkpoint": saved.id, "run": saved.run_id, "entry": f"{saved.run_id}:{saved.seq}"}
    return ShortcutAnswer(f"saved: {saved.id} at {data['entry']}", data)


def show(
    caller: Caller, id: str | None = None, words: str | None = None, limit: int = _SHOWN, cursor: str | None = None
) -> ShortcutAnswer:
    if words is not None:
        return _search(caller, words, limit, cursor)
    if id is None:
        text = situation(caller)
        return ShortcutAnswer(text, {"kind": "situation", "record": {"text": text}})
    kind, record = _record(caller, id)
    data = plain_record(record)
    lines = (f"{name}: {one_line(value) if isinstance(value, str) else value}" for name, value in data.items())
    return ShortcutAnswer(f"{kind}\n" + "\n".join(lines), {"kind": kind, "record": data})


def _search(caller: Caller, words: str, limit: int, cursor: str | None) -> ShortcutAnswer:
    page = caller.log.journal.search(words, stream=caller.run_id, limit=limit, after=decode_cursor(cursor))
    found = [
        {
            "entry": entry.id,
            "at": f"{entry.at:%Y-%m-%d %H:%M:%S}",
            "by": entry.agent or "",
            "text": shorten(one_line(entry.body or ""), _LINE),
        }
        for entry in page
    ]
    lines = [f"{one['entry']}  {one['at']}  {one['by']}: {one['text']}" for one in found]
    return ShortcutAnswer("\n".join([*lines, *page.warnings]) or "Nothing found.", add_cursor({"entries": found}, page))


def review(caller: Caller, change: str = "", only: str = "", feedback: str = "") -> ShortcutAnswer:
    from decklog.review.agent_tool import review_for_agent

    if is_over_http(caller.worker):
        raise Invalid("this server has no access to your files", hint="Run: decklog review", field="change")
    is_worktree = change == _WORKTREE
    data = review_for_agent(
        caller.log, Path.cwd(), change="" if is_worktree else change, only=only, worktree=is_worktree, feedback=feedback
    )
    verdict = data.get("verdict") or data["status"]
    lines = [f"{one['severity']}: {one['file'] or ''}:{one['line'] or ''} {one_line(one['text'])}" for one in data["findings"]]
    code = {"block": REFUSED, "fail": REFUSED, "unproven": PENDING}.get(verdict, DONE)
    return ShortcutAnswer("\n".join([str(verdict), *lines]), data, code=code)


def why(caller: Caller, place: str) -> ShortcutAnswer:
    from decklog.agents.origins.line_story import explain_line, facts_of
    from decklog.provenance.settings import git_failures, repository_at

    if is_over_http(caller.worker):
        raise Invalid("this server has no access to your files", hint="Run: decklog why FILE:LINE", field="place")
    file, _, line = place.rpartition(":")
    if not file or not (line.isascii() and line.isdecimal()):
        raise Invalid(f"{shorten(place, 80)!r} is not FILE:LINE", hint="Such as: src/app.py:12", field="place")
    with git_failures():
        repo = repository_at()
        path = repo.relative(str(Path(file).absolute()))
        if path is None:
            raise NotFound(f"{shorten(file, 80)} is not in the repository {repo.top}", hint="Name a file of it.")
        found = explain_line(repo, caller.log, path, int(line))
        lines = [f"{fact.label}: {shorten(one_line(fact.text), _LINE)}" for fact in facts_of(found)]
    text = "\n".join([f"{path}:{line} {shorten(found.line.text, _LINE)}", *lines])
    return ShortcutAnswer(text, shorten_texts(found.as_dict()))


def _record(caller: Caller, record_id: str) -> tuple[str, Any]:
    """Return the record with an id: an entry by STREAM:NUMBER, or a record whose ids agents see."""
    log = caller.log
    getters: dict[str, Any] = {
        "run": log.runs.get,
        "task": log.tasks.get,
        "entry": log.journal.get,
        "approval": log.approvals.get,
        "lesson": log.memory.get,
        "message": log.inbox.get,
        "checkpoint": log.states.get_checkpoint,
        "charge": log.ledger.get,
    }
    is_entry = record_id.rpartition(":")[2].isdecimal() and ":" in record_id
    for kind in ["entry", *getters] if is_entry else [name for name in getters if name != "entry"]:
        try:
            return kind, getters[kind](record_id)
        except NotFound:
            continue
    raise NotFound(
        f"nothing has the id {shorten(record_id, 80)!r}", hint="show with words finds entries; plan lists the tasks of the run."
    )


def inbox(caller: Caller, seen: list[str] | None = None, limit: int = _SHOWN, cursor: str | None = None) -> ShortcutAnswer:
    claim = caller.current_claim()
    with caller.acting(None):
        for message_id in seen or ():
            caller.log.inbox.mark_seen(message_id, by=caller.worker.name)
    task_id = None if claim is None else claim.task_id
    page = caller.log.inbox.pending_for(
        caller.worker.name, run_id=caller.find_run(claim), task_id=task_id, limit=limit, after=decode_cursor(cursor)
    )
    found = [
        {"message": one.id, "from": one.from_handle, "severity": one.severity.value, "text": shorten(one.body)} for one in page
    ]
    lines = [f"{one['message']}  {one['from']}, {one['severity']}: {one_line(one['text'])}" for one in found]
    return ShortcutAnswer("\n".join(lines) or "No messages.", add_cursor({"messages": found}, page))


def _listed(name: str, answer: ShortcutAnswer) -> ShortcutAnswer:
    """Put the list of an answer into a field: the result of a tool is an object."""
    answer.data = {name: answer.data}
    return answer


_ENDED = {"outcome": str, "state": str}
TOOLS = {
    tool.name: tool
    for tool in (
        McpTool(
            "next",
            "Renew and show your task, or get the next one; else the reason. wait: seconds, up to 50",
            verbs.next_,
            {"task": str, "title": str, "reason": dict},
            is_idempotent=True,
            accepts_run=True,
        ),
        McpTool("done", "End your task as done; evidence: files, commands, links", verbs.done, _ENDED, is_idempotent=True),
        McpTool("fail", "End this attempt; another follows after some seconds. If it can't help: block", verbs.fail, _ENDED),
        McpTool("block", "Block your task until something outside changes", verbs.block, _ENDED),
        McpTool("note", "Record what you found or decided", verbs.note, {"entry": str}, accepts_run=True),
        McpTool(
            "ask",
            "Ask a person; repeat the question to get the answer. about: the exact text to decide on",
            ask,
            {"approval": str, "state": str},
            is_idempotent=True,
            accepts_run=True,
        ),
        McpTool(
            "spend",
            "Record tokens of a model call that nobody else records; cost: dollars. overdrew: stop, and ask",
            spend,
            {"charge": str, "overdrew": bool},
        ),
        McpTool(
            "plan",
            "Add tasks: titles or objects {title, objective, acceptance, depends_on}. Without: the plan and its status",
            plan,
            {"run": str, "tasks": list},
            accepts_run=True,
        ),
        McpTool("remember", "Store a verified lesson for similar work", verbs.remember, {"lesson": str}),
        McpTool("recall", "Find lessons that fit your next step", recall, {"lessons": list}),
        McpTool(
            "checkpoint",
            "Save a checkpoint of the run, with the state to continue from",
            checkpoint,
            {"checkpoint": str, "entry": str},
            accepts_run=True,
        ),
        McpTool(
            "show",
            "A run, task, entry, approval, lesson … by id; entries by words; without, your situation",
            show,
            {"record": dict, "entries": list},
            is_read_only=True,
            accepts_run=True,
        ),
        McpTool(
            "review",
            "Review BASE..HEAD or worktree; only: one stage",
            review,
            {"verdict": str, "findings": list},
        ),
        McpTool("why", "Who wrote FILE:LINE, by which prompt and task", why, {"origin": dict}, is_read_only=True),
        McpTool("inbox", "Messages for you; seen: ids you have read", inbox, {"messages": list}, is_idempotent=True),
    )
}
