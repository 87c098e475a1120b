"""Settings that make an agent ask for permission. The proxy can only deny what the agent asks for.

Each agent has its own switch, found by experiment: environment variables, an option of a new session, or allowed modes. All of
them override the editor's request, so they apply only with --enforce or under the conductor. They are recorded.
"""

import json
from collections.abc import Mapping
from typing import Any

from decklog.agents.acp.exchange import OPENING, Message, params_of
from decklog.agents.texts import dict_of, list_of

# Claude Code runs commands that it considers harmless without asking, unless a tool is listed here.
_CLAUDE_ASK_TOOLS = ("Bash", "Edit", "Write", "MultiEdit", "NotebookEdit", "WebFetch")
# Modes in which an agent asks. Other programs have no known mode that skips the question.
_ASKING_MODES = {
    "claude": frozenset(["default", "plan"]),
    "codex": frozenset(["read-only"]),
    "gemini": frozenset(["default", "plan"]),
}
# Editor options that would stop Claude Code from asking.
_CLAUDE_ALLOWED = ("permissionMode", "allowDangerouslySkipPermissions", "allowedTools")
_OPENCODE = "OPENCODE_CONFIG_CONTENT"
_CODEX = "INITIAL_AGENT_MODE"


def build_environment(environment: Mapping[str, str], *, is_sandboxed: bool = False) -> dict[str, str]:
    """Return the environment variables that make agents ask; each agent ignores those of the others.

    Codex asks only in modes with its own sandbox. That sandbox can't run inside Decklog's, so there Codex does not ask.
    """
    try:
        given = dict_of(json.loads(environment.get(_OPENCODE) or "{}"))
    except ValueError:
        given = {}
    codex_mode = "agent-full-access" if is_sandboxed else "read-only"
    return {_CODEX: codex_mode, _OPENCODE: json.dumps({**given, "permission": {"*": "ask"}})}


def require_permissions(program: str, message: Message) -> Message | None:
    """Return the request that opens a session, changed so that the agent asks; None if it needs no change."""
    if program != "claude" or message.get("method") not in OPENING:
        return None
    params = params_of(message)
    meta = dict_of(params.get("_meta"))
    claude = dict_of(meta.get("claudeCode"))
    options = {name: value for name, value in dict_of(claude.get("options")).items() if name not in _CLAUDE_ALLOWED}
    # Set it explicitly: by default Claude Code offers a mode without questions.
    options["allowDangerouslySkipPermissions"] = False
    settings = dict_of(options.get("settings"))
    permissions = dict_of(settings.get("permissions"))
    given = permissions.get("ask")
    ask_rules = [*(given if isinstance(given, list) else ()), *_CLAUDE_ASK_TOOLS]
    settings = {**settings, "permissions": {**permissions, "ask": list(dict.fromkeys(map(str, ask_rules)))}}
    new_meta = {**meta, "claudeCode": {**claude, "options": {**options, "settings": settings}}}
    return {**message, "params": {**params, "_meta": new_meta}}


def mode_refusal(program: str, message: Message) -> str | None:
    """Return why a mode without questions is refused; None if the message sets no such mode."""
    params = params_of(message)
    if message.get("method") == "session/set_mode":
        mode: Any = params.get("modeId")
    elif message.get("method") == "session/set_config_option" and params.get("configId") == "mode":
        mode = params.get("value")
    else:
        return None
    asking = _ASKING_MODES.get(program)
    if asking is None or mode in asking:
        return None
    left = ", ".join(sorted(asking))
    return f"Decklog was started with --enforce, and {program} does not ask in the mode {mode}. Allowed modes: {left}."


def without_allow_always(message: Message) -> Message | None:
    """Return a permission request without its "allow always" options; None if it has none."""
    params = params_of(message)
    options = list_of(params.get("options"))
    left = [option for option in options if option.get("kind") != "allow_always"]
    if len(left) == len(options) or not left:
        return None
    return {**message, "params": {**params, "options": left}}


def enforcement_notes(program: str, *, is_sandboxed: bool = False) -> list[str]:
    """Return descriptions of what was done to make the agent ask."""
    if program == "codex" and is_sandboxed:
        return [f"not made to ask: Decklog's sandbox limits it, its own is off ({_CODEX}=agent-full-access)"]
    done = ["no answer is offered that is valid for more than one call"]
    own = {
        "claude": f"set to ask for {', '.join(_CLAUDE_ASK_TOOLS)}",
        "codex": f"started with {_CODEX}=read-only",
        "opencode": f"started with {_OPENCODE}, so that it asks for everything",
    }
    done += [own[program]] if program in own else []
    if asking := _ASKING_MODES.get(program):
        done.append(f"limited to the modes {', '.join(sorted(asking))}")
    return done
