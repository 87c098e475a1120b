"""Sources of every system that has an importer, of any size, with bodies, links and comments as people leave them.

The rows of a source are what the system has in tables or documents: an issue, a link within it and a comment are three of them.
"""

import json
import struct
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import apsw

from decklog.importing.exports import Schema
from decklog.plugins.importers.gaia.importer import DATABASES
from decklog.plugins.importers.gaia.importer import SCHEMA as GAIA
from decklog.plugins.importers.hermes import HermesImport
from decklog.plugins.importers.runstore.importer import SCHEMA as RUNSTORE

BODY = (
    "Ran the tests after the change: 41 passed, one still fails in the ledger module because the rounding of the last line "
    "differs from the invoice. Next I will look at how the totals are made and compare them with the rows they come from."
)
START = datetime(2026, 1, 1, tzinfo=UTC)
_STATES = ("open", "closed", "open", "in_progress")


class Source(NamedTuple):
    """How a system's source is made, and how it is taken over: `importing` makes the import of `log` and `path`."""

    fill: Callable[[Path, int], None]
    imported: str
    importing: str


def at(number: int) -> str:
    return (START + timedelta(seconds=number)).isoformat()


def stored(path: Path, statements: Iterable[str], rows: dict[str, Iterator[tuple[Any, ...]]]) -> None:
    """Make a database, and insert rows into its tables."""
    db = apsw.Connection(str(path))
    with db:
        for statement in statements:
            db.execute(statement)
        for table, found in rows.items():
            width = len(list(db.execute(f"select * from pragma_table_info('{table}')")))
            db.executemany(f"insert into {table} values ({', '.join('?' for _ in range(width))})", found)
    db.close()


def create(path: Path, schema: Schema, table: str | None = None) -> None:
    """Make a database with a table of an older system, or with all of them."""
    db = apsw.Connection(str(path))
    schema.create(db, table)
    db.close()


def runstore(path: Path, count: int) -> None:
    """Write a run's events, and a task for every twenty of them."""
    tasks = count // 20

    def task(number: int) -> tuple[Any, ...]:
        listed = ('["works"]', '["pytest"]', '["src"]', "completed" if number % 2 else "pending")
        return (f"t-{number}", "r-1", f"Task {number}", BODY, *listed, number % 2, None, None, at(number), at(number))

    def event(number: int) -> tuple[Any, ...]:
        return (number + 1, "r-1", at(number), "checker", "note", f"{number}: {BODY}", f'{{"number": {number}}}')

    run = ("r-1", "Ship it", "/srv/app", "running", None, 3, 1, None, at(0), at(0))
    rows = {"runs": iter([run]), "tasks": map(task, range(tasks)), "events": map(event, range(count - tasks - 1))}
    create(path, RUNSTORE)
    stored(path, (), rows)


def gaia(path: Path, count: int) -> None:
    """Write a home: of twenty rows one is a task, three are money, and the others are calls of tools."""
    path.mkdir()
    tasks, spent = count // 20, count * 3 // 20

    def task(number: int) -> tuple[Any, ...]:
        state = "done" if number % 2 else "pending"
        return (f"gt-{number}", 50, state, at(number), at(number), None, None, json.dumps({"task": BODY}), None, None, 0.0, 2)

    def charge(number: int) -> tuple[Any, ...]:
        return (f"s-{number}", at(number), f"gt-{number % tasks}", "plan", "opus", 900, 100, 0, 210, 0.0125)

    def call(number: int) -> tuple[Any, ...]:
        given, found = json.dumps({"command": "pytest -q", "number": number}), json.dumps({"out": BODY})
        return (number + 1, at(number), f"gt-{number % tasks}", "build", "coding", "bash", given, found, 1200, None, 2)

    made = {
        "tasks": map(task, range(tasks)),
        "spend": map(charge, range(spent)),
        "audit": map(call, range(count - tasks - spent)),
    }
    for table, rows in made.items():
        create(path / DATABASES[table], GAIA, table)
        stored(path / DATABASES[table], (), {table: rows})


def items(count: int) -> Iterator[tuple[int, int | None, bool]]:
    """Number items of a tracker; every third waits for an earlier one, and somebody commented on every fifth."""
    rows = number = 0
    while rows < count:
        waits_for, is_commented = (number // 2 if number % 3 == 2 else None), number % 5 == 0
        yield number, waits_for, is_commented
        rows += 1 + (waits_for is not None) + is_commented
        number += 1


def beads(path: Path, count: int) -> None:
    with path.open("w") as file:
        for number, other, is_commented in items(count):
            needs = [] if other is None else [{"depends_on_id": f"bd-{other:x}", "type": "blocks"}]
            said = [{"id": number, "author": "ana", "text": BODY, "created_at": at(number)}] if is_commented else []
            fields = {"id": f"bd-{number:x}", "title": f"Issue {number}", "description": BODY, "status": _STATES[number % 4]}
            times = {"created_at": at(number), "updated_at": at(number)}
            file.write(json.dumps({**fields, "priority": number % 5, **times, "dependencies": needs, "comments": said}) + "\n")


def taskmaster(path: Path, count: int) -> None:
    tasks = []
    for number, other, _ in items(count):
        needs = [] if other is None else [other + 1]
        words = {"title": f"Task {number}", "description": BODY, "status": "done" if number % 4 == 1 else "pending"}
        tasks.append(
            {"id": number + 1, **words, "priority": "high", "dependencies": needs, "updatedAt": at(number), "subtasks": []}
        )
    path.write_text(json.dumps({"master": {"tasks": tasks, "metadata": {"created": at(0)}}}))


def github(path: Path, count: int) -> None:
    issues = []
    for number, other, is_commented in items(count):
        body = BODY if other is None else f"{BODY}\n\nDepends on #{other + 1}"
        said = [{"id": f"IC_{number}", "author": {"login": "ana"}, "body": BODY, "createdAt": at(number)}] if is_commented else []
        fields = {"number": number + 1, "id": f"I_{number}", "title": f"Issue {number}", "body": body, "comments": said}
        state = {"state": "CLOSED", "closedAt": at(number)} if number % 4 == 1 else {"state": "OPEN", "closedAt": None}
        times = {"createdAt": at(number), "updatedAt": at(number)}
        rest = {"author": {"login": "ana"}, "labels": [{"name": "p2"}], "assignees": [], "milestone": None, "stateReason": ""}
        issues.append({**fields, **state, **times, **rest, "url": f"https://github.com/acme/parser/issues/{number + 1}"})
    path.write_text(json.dumps(issues))


def hermes(path: Path, count: int) -> None:
    """Write a board: of ten rows one is a task, one a comment, and the others are events."""
    tasks, first = max(1, count // 10), int(START.timestamp())

    def row(table: str, fields: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(fields.get(name) for name in HermesImport.tables[table])

    def task(number: int) -> tuple[Any, ...]:
        fields = {"id": f"t_{number:08x}", "title": f"Task {number}", "body": BODY, "status": "done" if number % 2 else "todo"}
        return row("tasks", {**fields, "priority": 1, "created_at": first + number})

    def comment(number: int) -> tuple[Any, ...]:
        fields = {"id": number + 1, "task_id": f"t_{number:08x}", "author": "ana", "body": BODY, "created_at": first + number}
        return row("task_comments", fields)

    def event(number: int) -> tuple[Any, ...]:
        fields = {"id": number + 1, "task_id": f"t_{number % tasks:08x}", "kind": "note", "created_at": first + number}
        return row("task_events", {**fields, "payload": json.dumps({"number": number, "said": BODY})})

    tables = [f"create table {table} ({', '.join(names)})" for table, names in HermesImport.tables.items()]
    made = {"tasks": map(task, range(tasks)), "task_comments": map(comment, range(tasks))}
    stored(path, tables, {**made, "task_events": map(event, range(count - 2 * tasks))})


def vibekanban(path: Path, count: int) -> None:
    """Write a project: of ten rows one is a task, one a workspace of it, and the others are what agents were asked there."""
    tasks = max(1, count // 10)

    def name(number: int) -> bytes:
        return UUID(int=(number << 96) + number).bytes

    tables = {
        "projects": "id, name, default_agent_working_dir",
        "tasks": "id, project_id, title, description, status, parent_workspace_id, created_at, updated_at",
        "workspaces": "id, task_id, branch, created_at",
        "sessions": "id, workspace_id, executor, created_at",
        "execution_processes": "id, session_id, run_reason, status, exit_code, started_at, completed_at",
        "coding_agent_turns": "id, execution_process_id, agent_session_id, prompt, summary, created_at",
    }
    turns = count - 4 * tasks

    def of_task(table: str, number: int) -> tuple[Any, ...]:
        match table:
            case "tasks":
                state = "done" if number % 2 else "todo"
                return (name(number), name(0), f"Task {number}", BODY, state, None, at(number), at(number))
            case "workspaces":
                return (name(number), name(number), f"vk/{number}", at(number))
            case "sessions":
                return (name(number), name(number), "CLAUDE_CODE", at(number))
        return (name(number), name(number), "codingagent", "completed", 0, at(number), at(number))

    def turn(number: int) -> tuple[Any, ...]:
        return (name(number + 1), name(number % tasks + 1), f"session-{number}", f"{number}: {BODY}", "Fixed", at(number))

    each = ("tasks", "workspaces", "sessions", "execution_processes")
    made = {table: map(partial(of_task, table), range(1, tasks + 1)) for table in each}
    rows = {"projects": iter([(name(0), "Parser", "/srv/parser")]), **made, "coding_agent_turns": map(turn, range(turns))}
    stored(path, [f"create table {table} ({names})" for table, names in tables.items()], rows)


def packed(text: str) -> bytes:
    """Write a text as MessagePack."""
    data = text.encode()
    return b"\xdb" + struct.pack(">I", len(data)) + data


def langgraph(path: Path, count: int) -> None:
    """Write a hundred threads: of ten rows one is a checkpoint, and the others are what nodes wrote."""
    place = "thread_id text, checkpoint_ns text, checkpoint_id text"
    tables = [
        f"create table checkpoints ({place}, parent_checkpoint_id text, type text, checkpoint blob, metadata blob)",
        f"create table writes ({place}, task_id text, task_path text, idx integer, channel text, type text, value blob)",
    ]
    made = count // 10

    def checkpoint(number: int) -> tuple[Any, ...]:
        document = {"v": 4, "ts": at(number), "id": f"1f0-{number:08}", "channel_values": {"said": BODY, "count": number}}
        return (f"thread-{number % 100}", "", f"1f0-{number:08}", None, "json", json.dumps(document), '{"step": 1}')

    def write(number: int) -> tuple[Any, ...]:
        above = number % made
        where = (f"thread-{above % 100}", "", f"1f0-{above:08}", f"task-{number // made}", "~__pregel_pull, agent")
        return (*where, 0, "messages", "msgpack", packed(f"{number}: {BODY}"))

    stored(path, tables, {"checkpoints": map(checkpoint, range(made)), "writes": map(write, range(count - made))})


def gemini(path: Path, count: int) -> None:
    """Write chats of a thousand lines: each answer has a text and uses a tool."""
    path.mkdir()
    tokens = {"input": 100, "output": 5, "cached": 60, "thoughts": 7, "tool": 0, "total": 112}
    for session in range(max(1, count // 1000)):
        with open(path / f"session-{session:06}.jsonl", "w", encoding="utf-8") as file:
            file.write(json.dumps({"sessionId": f"g{session}", "projectHash": "p", "startTime": at(session * 1000)}) + "\n")
            for number in range(session * 1000, session * 1000 + 999):
                call = {"id": f"c{number}", "name": "run_shell_command", "args": {"command": "pytest -q"}, "status": "success"}
                result = [{"functionResponse": {"id": f"c{number}", "response": {"output": f"Output: {number}: {BODY}"}}}]
                fields = {"id": f"m{number}", "timestamp": at(number), "type": "gemini", "content": f"{number} of them: {BODY}"}
                line = {**fields, "model": "gemini-x", "tokens": tokens, "toolCalls": [{**call, "result": result}]}
                file.write(json.dumps(line) + "\n")


def opencode(path: Path, count: int) -> None:
    """Write sessions: of five rows one is an answer, and the others are its parts."""
    first = int(START.timestamp() * 1000)
    tables = [
        "create table session (id text primary key, parent_id text, directory text, title text, version text, time_created int)",
        "create table message (id text primary key, session_id text, time_created integer, data text)",
        "create table part (id text primary key, message_id text, session_id text, time_created integer, data text)",
    ]
    tokens = {"input": 100, "output": 20, "reasoning": 0, "cache": {"read": 40, "write": 3}}
    fields = {"role": "assistant", "modelID": "m-1", "providerID": "p", "cost": 0.01, "tokens": tokens}
    answer = json.dumps({**fields, "time": {"created": first, "completed": first}})
    answers, sessions = count // 5, max(1, count // 5000)

    def message(number: int) -> tuple[Any, ...]:
        return (f"msg_{number:08}", f"ses_{number % sessions}", first + number, answer)

    def part(number: int) -> tuple[Any, ...]:
        above, kind = number // 4, number % 4
        state = {"status": "completed", "input": {"command": "pytest -q"}, "output": f"{number}: {BODY}", "metadata": {"exit": 0}}
        used = {
            "type": "tool",
            "tool": "bash",
            "callID": f"c{number}",
            "state": {**state, "time": {"start": first, "end": first}},
        }
        shown = used if kind else {"type": "text", "text": f"{number}: {BODY}"}
        return (f"prt_{number:08}", f"msg_{above:08}", f"ses_{above % sessions}", first + number, json.dumps(shown))

    begun = ((f"ses_{number}", None, "/srv/app", "Fix it", "1.0", first) for number in range(sessions))
    rows = {"session": begun, "message": map(message, range(answers)), "part": map(part, range(count - answers - sessions))}
    stored(path, tables, rows)


def otlp(path: Path, count: int) -> None:
    """Write traces of fifty spans, a request each: within an agent's span half are calls of tools, and half of a model."""
    first = int(START.timestamp()) * 10**9

    def pairs(**fields: str) -> list[dict[str, Any]]:
        return [{"key": name.replace("__", "."), "value": {"stringValue": value}} for name, value in fields.items()]

    def chat(number: int) -> dict[str, Any]:
        said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": f"{number}: {BODY}"}]}])
        named = pairs(gen_ai__operation__name="chat", gen_ai__request__model="gpt-5.5", gen_ai__output__messages=said)
        used = {"key": "gen_ai.usage.input_tokens", "value": {"intValue": str(1200 + number % 50)}}
        return {"name": "chat gpt-5.5", "kind": 3, "attributes": [*named, used]}

    def tool(number: int) -> dict[str, Any]:
        given, found = json.dumps({"command": "pytest -q"}), f"{number}: {BODY}"
        named = pairs(gen_ai__operation__name="execute_tool", gen_ai__tool__name="bash")
        return {
            "name": "execute_tool bash",
            "kind": 1,
            "attributes": [*named, *pairs(gen_ai__tool__call__arguments=given, gen_ai__tool__call__result=found)],
        }

    def span(number: int) -> dict[str, Any]:
        trace, place = divmod(number, 50)
        begun = first + trace * 10**11 + place * 10**9
        times = {"startTimeUnixNano": str(begun), "endTimeUnixNano": str(begun + (60 * 10**9 if place == 0 else 5 * 10**8))}
        named = {"traceId": f"{trace + 1:032x}", "spanId": f"{number + 1:016x}", **times}
        if place == 0:
            return {**named, "name": "invoke_agent", "kind": 1, "attributes": pairs(gen_ai__operation__name="invoke_agent")}
        return {**named, "parentSpanId": f"{trace * 50 + 1:016x}", **(chat(number) if place % 2 else tool(number))}

    source = {"resource": {"attributes": pairs(service__name="coder", host__name="one")}}
    with path.open("w") as file:
        for start in range(0, count, 50):
            spans = [span(number) for number in range(start, min(count, start + 50))]
            fields = {"scope": {"name": "library", "version": "1"}, "spans": spans}
            file.write(json.dumps({"resourceSpans": [{**source, "scopeSpans": [fields]}]}) + "\n")


def _source(fill: Callable[[Path, int], None], system: str, name: str, more: str = "") -> Source:
    return Source(fill, f"from decklog.plugins.importers.{system}.importer import {name}", f"{name}(log, path{more})")


def _history(fill: Callable[[Path, int], None], program: str) -> Source:
    imported = "from decklog.agents.history import HistoryImport; from decklog.agents.spool import Spool"
    return Source(fill, imported, f"HistoryImport(log, {program!r}, path, Spool(place + '.spool'))")


_LONG, _NAMED = ", seconds=36000", ", run_id='taken'"
# By the names of their commands.
SOURCES = {
    "runstore": _source(runstore, "runstore", "RunStoreImport", _LONG),
    "gaia": _source(gaia, "gaia", "GaiaImport", _LONG),
    "beads": _source(beads, "beads", "BeadsImport", _NAMED),
    "taskmaster": _source(taskmaster, "taskmaster", "TaskMasterImport", _NAMED),
    "github": _source(github, "github", "GithubImport", _NAMED),
    "vibe-kanban": _source(vibekanban, "vibekanban", "VibeKanbanImport", _NAMED + _LONG),
    "hermes": _source(hermes, "hermes", "HermesImport", _NAMED + _LONG),
    "langgraph": _source(langgraph, "langgraph", "LangGraphImport", _LONG),
    "gemini": _history(gemini, "gemini"),
    "opencode": _history(opencode, "opencode"),
    "otlp": Source(otlp, "from decklog.plugins.adapters.otel.importer import OtlpImport", "OtlpImport(log, path)"),
}
