"""Identification of the agent that sends a request.

A server on standard input belongs to the program that started it: the environment, the session and the program identify the
agent. Codex does not pass its environment and sends its thread id with each call instead. On HTTP a client is identified by its
session, or by the name that it sends.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

from decklog.agents.caller import Worker, worker
from decklog.core.errors import Invalid
from decklog.core.processes import Identity

HEADER = "decklog-worker"
_NAME = re.compile(r"[\w.@:+-]{1,100}")
_LONGEST_PROGRAM = 40
_HTTP = "http "


def identify_caller(context: Any, environment: Mapping[str, str] | None = None) -> tuple[Worker, Mapping[str, str]]:
    """Return the calling agent, with run and task from its environment."""
    program = _program(context)
    if context.request is not None:
        return _over_http(context.request.headers, program), {}
    variables = os.environ if environment is None else environment
    thread = (context.meta or {}).get("threadId")
    if program.startswith("codex") and isinstance(thread, str) and _NAME.fullmatch(thread) is not None:
        variables = {**variables, "CODEX_THREAD_ID": thread}
    return worker(None, variables, program), variables


def is_over_http(caller: Worker) -> bool:
    """Return whether a worker is connected over HTTP, so that its files may be out of reach."""
    return caller.instance.startswith(_HTTP)


def _program(context: Any) -> str:
    """Return the name of the client's program, in plain characters."""
    client = context.session.client_params
    name = client.client_info.name if client is not None else ""
    return re.sub(r"[^\w.@+-]+", "-", name, flags=re.ASCII).strip("-")[:_LONGEST_PROGRAM] or "mcp"


def _over_http(headers: Mapping[str, str], program: str) -> Worker:
    name, session = headers.get(HEADER), headers.get("mcp-session-id")
    if name is not None and _NAME.fullmatch(name) is None:
        raise Invalid(f"the header {HEADER} is no valid worker name", hint="Letters, digits and .@:+-_, up to 100.", field=HEADER)
    if name is None and session is None:
        raise Invalid(
            "this client has no session and sends no name, so its tasks can't be assigned to it",
            hint=f"Send the header {HEADER} with a unique name.",
            field=HEADER,
        )
    return Worker(name or f"{program}-{str(session)[:8]}", f"{_HTTP}{name or session}", Identity.own())
