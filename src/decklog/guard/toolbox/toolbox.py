"""The toolbox: an agent's tools for a run, a task and a root folder. Every call is recorded."""

import hashlib
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from decklog.core.errors import DecklogError, Invalid, NotFound, Unavailable
from decklog.core.folders import state_home
from decklog.guard.calls.guard import ApprovalAccess, Gate, Guard, TrustAccess
from decklog.guard.calls.tool import Check, Commands, Tool, ToolCall, map_texts, to_data
from decklog.guard.files.access import AccessRules
from decklog.guard.files.root import Root
from decklog.guard.policy import Policy
from decklog.guard.sandbox.sandbox import Sandbox
from decklog.guard.shell.spool import DEFAULT_CAP
from decklog.guard.toolbox.catalogue import TOOLS
from decklog.guard.toolbox.once import ToolEffect
from decklog.journal.attribution import find_context_task
from decklog.log import STORES, Decklog
from decklog.records.values import to_json

Critic = Callable[[str, dict[str, Any], Any], list[str]]
# Longest recorded text. A longer one is shortened, with the digest of the whole.
LONGEST_TEXT = 1024 * 1024
LONGEST_PREVIEW = 10_000
# Details of a guard's error that are recorded.
_DECISION = ("decision", "rule", "digest", "approval_id")


class Toolbox:
    """The tools of an agent: `box.call("read_file", {"path": "a.py"})`, or `box.read_file("a.py")`.

    Approvals and trust default to the log's. A call with a `step` happens once: if it is repeated, it returns its first result.
    `gate` returns why commits must not be published (see `decklog.review.publishing`). `critic` reviews the changes of each
    call (see `decklog.review.critique`); `critique` has its findings on the last call.
    """

    def __init__(
        self,
        log: Decklog,
        run_id: str,
        *,
        root: str | os.PathLike[str],
        task: str | None = None,
        agent: str | None = None,
        approvals: ApprovalAccess | None = None,
        trust: TrustAccess | None = None,
        policy: Policy | None = None,
        gate: Gate | None = None,
        critic: Critic | None = None,
        sandbox: Sandbox | None = None,
        rules: AccessRules | None = None,
        environment: Iterable[str] = (),
        tools: Iterable[Tool | Callable[..., Any]] = (),
        state: str | os.PathLike[str] | None = None,
        cap_bytes: int = DEFAULT_CAP,
    ) -> None:
        self.log = log
        self.run_id = log.runs.get(run_id).id
        self.task_id = task
        self.agent = agent
        self.critique: list[str] = []
        self._critic = critic
        extra_tools = (tool if isinstance(tool, Tool) else Tool.of(tool) for tool in tools)
        self.tools: dict[str, Tool] = {tool.name: tool for tool in (*TOOLS, *extra_tools)}
        self.root = Root(root, rules=self._task_rules(rules or AccessRules()))
        self._commands = Commands(
            state=Path(state) if state is not None else Path(state_home()) / "processes",
            sandbox=sandbox or Sandbox(),
            passed=tuple(environment),
            cap_bytes=cap_bytes,
        )
        self._guard = Guard(
            run_id=self.run_id,
            task_id=task,
            asker=agent or "agent",
            root=self.root.path,
            policy=policy,
            approvals=approvals or _find_store(log, "approvals"),
            trust=trust or _find_store(log, "trust"),
            gate=gate,
        )

    def _task_rules(self, rules: AccessRules) -> AccessRules:
        """Restrict writing to the paths that the task allows."""
        if self.task_id is None:
            return rules
        task = self.log.tasks.get(self.task_id)
        if task.run_id != self.run_id:
            raise Invalid(f"task {task.id} belongs to run {task.run_id}, not to {self.run_id}", field="task")
        return rules.of_task(task.allowed_paths or rules.allowed, rules.forbidden)

    def __enter__(self) -> "Toolbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the root and remove the scratch directory. Background processes continue."""
        self.root.close()
        self._commands.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in self.tools:
            raise AttributeError(f"a toolbox has no {name!r}")
        return partial(self._call_as_function, name)

    def _call_as_function(
        self, name: str, /, *args: Any, step: str | None = None, check: Check | None = None, **parsed: Any
    ) -> Any:
        names = [parameter.name for parameter in self.tools[name].parameters]
        if len(args) > len(names):
            raise Invalid(f"{name} takes {len(names)} arguments, not {len(args)}", hint=f"Its parameters: {', '.join(names)}.")
        return self.call(name, {**dict(zip(names, args, strict=False)), **parsed}, step=step, check=check)

    def schemas(self) -> list[dict[str, Any]]:
        """Return the descriptions of all tools for a model: name, description and the JSON schema of the arguments."""
        return [tool.as_dict() for tool in self.tools.values()]

    def call(
        self, name: str, arguments: dict[str, Any] | None = None, *, step: str | None = None, check: Check | None = None
    ) -> Any:
        """Call a tool and record the call. Errors are raised, not returned.

        With a `step`, a tool that changes something does so once. After a crash, `check` returns whether it happened if the tool
        can't find out.
        """
        if self.log.is_in_transaction:
            raise Invalid(
                f"{name} can't be called inside a transaction: a rollback would undo its record, but not its effect",
                hint="Call it before or after the block of log.transaction().",
            )
        call = self._new_call(step)
        self.critique = []
        with self.log.acting(self.agent, task_id=self.task_id):
            recorder = _Recorder(call, name, arguments or {})
            try:
                result = self._perform(call, name, arguments or {}, check)
            except DecklogError as problem:
                recorder.failed(problem)
                raise
            except OSError as problem:
                error = Unavailable(f"{name} failed with a system error: {problem}", hint="Check the disk and the permissions.")
                recorder.failed(error)
                raise error from problem
            except BaseException as problem:
                recorder.failed(DecklogError(f"{type(problem).__name__}: {problem}"))
                raise
            finally:
                call.run_end_actions()
            recorder.done(result)
            if self._critic is not None and self.tools[name].changes:
                self.critique = self._critic(name, arguments or {}, to_data(result))
        return result

    def _new_call(self, step: str | None) -> ToolCall:
        return ToolCall(
            log=self.log,
            run_id=self.run_id,
            task_id=self.task_id or find_context_task(self.run_id),
            root=self.root,
            guard=self._guard,
            commands=self._commands,
            mark=self.log.parts.ids.new("proc"),
            step=step,
            notes={"guard": {}},
        )

    def _perform(self, call: ToolCall, name: str, arguments: dict[str, Any], check: Check | None) -> Any:
        tool = self.tools.get(name)
        if tool is None:
            raise NotFound(f"There is no tool {name!r}", hint=f"The tools: {', '.join(self.tools)}.", tool=name)
        parsed = tool.read(arguments)
        if call.step is not None and tool.changes:
            once = ToolEffect(call, tool, parsed, check)
            return once.perform(partial(self._prepare, call, tool, parsed), partial(self._act, call, tool, parsed))
        self._prepare(call, tool, parsed)
        return self._act(call, tool, parsed)

    def _prepare(self, call: ToolCall, tool: Tool, parsed: dict[str, Any]) -> None:
        call.notes["guard"] |= self._guard.check_action(tool.action)
        if tool.guard is not None:
            tool.guard(call, parsed)

    def _act(self, call: ToolCall, tool: Tool, parsed: dict[str, Any]) -> Any:
        first = {"root": (self.root,), "call": (call,), None: ()}[tool.injected]
        return tool.function(*first, **parsed)


class _Recorder:
    """Recorder of one call."""

    def __init__(self, call: ToolCall, name: str, arguments: dict[str, Any]) -> None:
        self._call = call
        self._name = name
        self._arguments = arguments
        self._started = time.monotonic()

    def done(self, result: Any) -> None:
        self._write({"result": to_data(result)})

    def failed(self, problem: DecklogError) -> None:
        decided = {name: problem.details[name] for name in _DECISION if name in problem.details}
        self._call.notes["guard"] |= decided
        self._write({"error": {"class": type(problem).__name__, **problem.as_dict()}})

    def _write(self, outcome: dict[str, Any]) -> None:
        payload = {
            "tool": self._name,
            "arguments": self._arguments,
            **outcome,
            "duration_ms": round((time.monotonic() - self._started) * 1000, 3),
            **({"step": self._call.step} if self._call.step else {}),
            **self._call.notes,
        }
        plain = map_texts(to_data(payload), make_recordable)
        self._call.record_event(self._name[:100], {name: _shorten_value(value) for name, value in plain.items()})


def _shorten_value(value: Any) -> Any:
    """Return a value unchanged, or its beginning and its digest if it is too large for one entry."""
    text = "" if isinstance(value, (str, int, float)) else to_json(value)
    if len(text) <= 2 * LONGEST_TEXT:
        return value
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"left_out_characters": len(text), "sha256": digest, "beginning": text[:LONGEST_PREVIEW]}


def make_recordable(text: str) -> str:
    """Return a recordable text: without NUL and lone surrogates; a digest replaces the middle of a very long one."""
    clean = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if not clean.isascii():
        clean = clean.encode("utf-8", "replace").decode()
    if len(clean) <= LONGEST_TEXT:
        return clean
    half = LONGEST_TEXT // 2
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f"{clean[:half]}\n[… {len(clean) - 2 * half} characters left out, sha256 of the whole {digest} …]\n{clean[-half:]}"


def _find_store(log: Decklog, name: str) -> Any:
    return getattr(log, name) if name in STORES else None
