"""The server: answers requests of a client from a log, one thread per call."""

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import anyio
import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from decklog import __version__
from decklog.core.errors import Closed, Conflict, DecklogError, Denied, FileReplaced, Invalid, LeaseLost, NotFound
from decklog.mcp import prompts, resources
from decklog.mcp.identity import HEADER, identify_caller
from decklog.mcp.source import LogSource
from decklog.mcp.tool import McpTool, replace_invalid_characters
from decklog.mcp.tools import TOOLS
from decklog.records.operations import is_agent_call
from decklog.shortcuts.caller import PENDING, Caller, ShortcutAnswer, ShortcutContext, Surface

R = TypeVar("R")

_INSTRUCTIONS = (
    "The log of this work: tasks, decisions, costs. Call next for your task and done, fail or block to end it; note what you "
    "decide; ask a person where you must not decide. Approvals, budgets and the policy are up to the owner."
)
# Clients cancel a call after a minute. A waiting thread checks more often.
_LONGEST_WAIT = 50.0
_STEP_SECONDS = 1.0
_THREADS = 12


def _spell_call(verb: str, *_words: str, **options: object) -> str:
    arguments = " and ".join(_spell_option(name, value) for name, value in options.items() if name != "as_")
    return f"{verb} with {arguments}" if arguments else verb


def _spell_option(name: str, value: object) -> str:
    return f"that name (DECKLOG_WORKER, or the header {HEADER})" if name == "as_" else f"{name}: {value}"


_SURFACE = Surface(_spell_call, _spell_option, Invalid)


class RequestHandlers:
    """Answers requests from a log."""

    def __init__(self, source: LogSource, environment: Mapping[str, str] | None = None) -> None:
        self._source = source
        self._environment = environment
        # Waiting calls have separate threads, so that they do not delay other calls.
        self._limits: dict[bool, anyio.CapacityLimiter] = {}

    # Tools

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.describe() for tool in TOOLS.values()])

    async def call_tool(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Run a tool; an error is an answer, too, with the next step."""
        try:
            tool = TOOLS.get(params.name)
            if tool is None:
                raise NotFound(f"there is no tool {params.name[:40]!r}", hint=f"There are: {', '.join(TOOLS)}.")
            return _build_result(await self._run(context, tool, tool.read(params.arguments or {})))
        except DecklogError as problem:
            return _build_error(problem, TOOLS.get(params.name))

    async def _run(self, context: Any, tool: McpTool, arguments: dict[str, Any]) -> ShortcutAnswer:
        named = {"run_id": arguments.pop("run")} if "run" in arguments and tool.accepts_run else {}
        if not (tool.can_wait and arguments.get("wait", 0.0) > 0):
            return await self.run_for_caller(context, named, partial(_call_tool, tool, arguments))
        end = time.monotonic() + min(arguments["wait"], _LONGEST_WAIT)
        notes: list[str] = []
        while True:
            # Wait in short steps: the client may have cancelled the call.
            arguments["wait"] = min(max(end - time.monotonic(), 0.0), _STEP_SECONDS)
            answer = await self.run_for_caller(context, named, partial(_call_tool, tool, dict(arguments)), can_wait=True)
            notes = answer.notes = [*notes, *answer.notes]
            if not (answer.data is None or answer.code == PENDING) or time.monotonic() >= end:
                return answer

    # Everything else

    async def list_resources(self, _context: Any, _params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=resources.LISTED)

    async def list_templates(self, _context: Any, _params: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        address = str(params.uri)
        try:
            data = await self.run_for_caller(context, {}, lambda caller: resources.read(caller.log, address))
        except DecklogError as problem:
            raise _build_mcp_error(problem) from None
        text = json.dumps(replace_invalid_characters(data), ensure_ascii=False)
        content = types.TextResourceContents(uri=address, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(self, _context: Any, _params: Any) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=prompts.LISTED)

    async def get_prompt(self, context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        try:
            text = await self.run_for_caller(
                context, {}, lambda caller: prompts.text(caller, params.name, params.arguments or {})
            )
        except DecklogError as problem:
            raise _build_mcp_error(problem) from None
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=replace_invalid_characters(text)))
        return types.GetPromptResult(messages=[message])

    async def run_for_caller(
        self, context: Any, named: dict[str, Any], job: Callable[[Caller], R], *, can_wait: bool = False
    ) -> R:
        """Run a job for the caller in a thread; do not wait for it after a cancellation."""
        limit = self._limits.setdefault(can_wait, anyio.CapacityLimiter(_THREADS))
        worker, environment = identify_caller(context, self._environment)

        def work() -> R:
            is_agent_call.set(True)  # the thread's own context, which ends with the job
            log = None
            try:
                log, folder = self._source.get()
                return job(Caller(log, worker, folder, ShortcutContext(named, environment), _SURFACE))
            except DecklogError as problem:
                if log is not None and isinstance(problem, (FileReplaced, Closed)):
                    self._source.forget(log)
                raise
            except RecursionError:
                raise Invalid("the given JSON is nested too deeply", hint="Send less of it.") from None
            except Exception as problem:
                raise DecklogError(f"{type(problem).__name__}: {problem}", hint="This is a bug in Decklog.") from problem

        return await run_sync(work, abandon_on_cancel=True, limiter=limit)


def _call_tool(tool: McpTool, arguments: dict[str, Any], caller: Caller) -> ShortcutAnswer:
    """Call a tool and extend the lease of its caller; warn if the caller has lost its task."""
    answer = tool.run(caller, **arguments)
    claim = None if caller.has_assigned_task else caller.claims.load()
    if claim is not None and claim.is_open:
        try:
            caller.renew_lease(claim)
        except (LeaseLost, NotFound) as problem:
            answer.notes.append(f"lost: {problem.message}")
        except DecklogError as problem:
            # The call succeeded: an error would make the client repeat it.
            answer.warnings.append(f"the lease was not renewed: {problem.message}")
    return answer


def _build_result(answer: ShortcutAnswer) -> types.CallToolResult:
    more = {"reason": answer.reason, "notes": answer.notes, "warnings": answer.warnings}
    data = {**(answer.data or {}), **{name: value for name, value in more.items() if value}}
    text = "\n".join([*answer.notes, answer.text])
    return types.CallToolResult(content=[_text_content(text)], structured_content=replace_invalid_characters(data))


def _build_error(problem: DecklogError, tool: McpTool | None) -> types.CallToolResult:
    hint = problem.hint or _next_step(problem, tool)
    error = {"code": problem.code, "message": problem.message, "hint": hint, "retryable": problem.retryable}
    text = f"{problem.code}: {problem.message}\n{hint}"
    return types.CallToolResult(
        content=[_text_content(text)], structured_content={"error": replace_invalid_characters(error)}, is_error=True
    )


def _next_step(problem: DecklogError, tool: McpTool | None) -> str:
    """Return the next step after an error without a hint."""
    if problem.retryable:
        return "Call it again in a moment."
    if isinstance(problem, NotFound):
        return "plan lists the tasks of the run, show with words finds what was written."
    if isinstance(problem, (Conflict, Denied)):
        return "show with the id shows its status; ask a person if you can't go on."
    return f"Its arguments: {', '.join(tool.arguments)}." if tool is not None else "Ask a person."


def _text_content(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=replace_invalid_characters(text))


def _build_mcp_error(problem: DecklogError) -> MCPError:
    hint = f" {problem.hint}" if problem.hint else ""
    data = {"code": problem.code, "hint": problem.hint, "retryable": problem.retryable}
    return MCPError(
        code=types.INVALID_PARAMS,
        message=replace_invalid_characters(problem.message + hint),
        data=replace_invalid_characters(data),
    )


def build(source: LogSource, environment: Mapping[str, str] | None = None) -> Server[Any]:
    """Build a server for a log."""
    handlers = RequestHandlers(source, environment)
    return Server(
        "decklog",
        version=__version__,
        title="Decklog",
        instructions=_INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )
