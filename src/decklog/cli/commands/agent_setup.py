"""Set up coding agents and editors to be recorded."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from difflib import unified_diff
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from decklog.agents.setup import files
from decklog.agents.setup.examining import find_program
from decklog.agents.setup.guard_trial import BY_HAND, COMMAND, CodexTrust, ListedHook, listed, trust_of, try_hooks
from decklog.agents.setup.installing import SetupState, SetupStep, state_of
from decklog.agents.setup.parts import AGENTS, FilePart, WholeFile, entries
from decklog.agents.setup.supported import PROGRAMS, Setting, SetupScope, SupportedProgram, codex_folder, has_plugin
from decklog.cli.agent_settings import build_setting, find_project, installer
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.groups import for_the_owner
from decklog.cli.plugin_group import PluginGroup, build_command
from decklog.cli.show import show
from decklog.core.errors import DecklogError, NotFound, Unavailable
from decklog.core.extras import install_hint
from decklog.core.plugins import PluginKind, report_failures
from decklog.location.locate import locate, repository

if TYPE_CHECKING:
    from decklog.plugins import AgentProgram


_EXITS = {SetupState.INSTALLED: 0, SetupState.MISSING: 3, SetupState.DIFFERS: 5}


def _project_of(scope: SetupScope, plugin_folder: str | None) -> str:
    found = find_project()
    if found is None and scope is SetupScope.PROJECT and plugin_folder is None:
        raise WrongUsage(
            f"{os.getcwd()} is in no repository and has no log, so which project is meant is not clear",
            hint="Run `decklog init` here first, or add --user if the program has user settings.",
        )
    return found or os.getcwd()


def set_up(call: Invocation, program: SupportedProgram, asked: dict[str, bool], *, is_trusted: bool = False, **more: Any) -> int:
    if sum(asked[name] for name in ("check", "remove", "printing")) > 1 or (asked["user"] and asked["project"]):
        raise WrongUsage("--check, --remove and --print exclude each other, and so do --user and --project")
    scope = program.scope(user=asked["user"], project=asked["project"])
    has_server = _has_server(asked, is_plugin=bool(more.get("plugin_folder")))
    setting = build_setting(scope, project=_project_of(scope, more.get("plugin_folder")), has_server=has_server, **more)
    parts = program.parts(setting)
    if asked["remove"]:
        return _remove(call, program, setting, parts)
    if asked["check"]:
        return _check(call, parts, _trust_state(setting, parts[0].path) if is_trusted else {})
    steps = installer().plan_installation(parts)
    if asked["printing"]:
        return _print(call, steps)
    installer().carry_out(steps)
    warnings = _warnings(program, setting, steps)
    if program.name == "codex":
        more_steps, said = (
            _trust_hooks(setting, parts[0].path)
            if is_trusted
            else ([], f"Codex runs no hook before its user trusts it. {BY_HAND}")
        )
        steps += more_steps
        warnings += [said] if said else []
    problems = try_hooks(program, setting)
    warnings += [_guard_failure(path, problem) for path, problem in problems.items() if problem is not None]
    if problems:
        warnings += [] if any(problems.values()) else [f"the guard was tried: `{COMMAND}` was blocked"]
    return _report(call, program, setting, steps, warnings) or int(any(problems.values()))


def _guard_failure(path: str, problem: str) -> str:
    return f"THE GUARD DOES NOT WORK: `{COMMAND}` through {path} ended with {problem}. See: decklog doctor agents"


def _has_server(asked: dict[str, bool], *, is_plugin: bool) -> bool | None:
    """Return whether to set up the MCP server: always in a plugin, in settings only with --mcp."""
    if asked["remove"]:
        return is_plugin or None
    is_here = find_spec("mcp") is not None
    if asked.get("mcp") and not is_here:
        raise Unavailable("the MCP server needs the package mcp, which is not installed", hint=install_hint("mcp"))
    return is_here if is_plugin else asked.get("mcp") or None


def _check(call: Invocation, parts: list[FilePart], trust: dict[str, SetupState]) -> int:
    states = {part.path: state_of(part) for part in parts} | trust
    show([{"path": path, "state": state.value} for path, state in states.items()], as_json=call.json)
    return max(_EXITS[state] for state in states.values())


def _remove(call: Invocation, program: SupportedProgram, setting: Setting, parts: list[FilePart]) -> int:
    if program.name == "codex":
        parts = [*parts, CodexTrust(_codex_config(setting), {}, files.real(parts[0].path))]
    steps = installer().plan_removal(parts)
    installer().carry_out(steps)
    return _report(call, program, setting, steps, [])


def _print(call: Invocation, steps: list[SetupStep]) -> int:
    """Print the changes as diffs."""
    shown = [{"path": step.path, "change": _diff_step(step)} for step in steps]
    text = "\n".join(one["change"] or f"{one['path']} has it already." for one in shown)
    return show(shown, as_json=call.json, text=text)


def _diff_step(step: SetupStep) -> str:
    before = (step.before or "").splitlines()
    after = (step.after or "").splitlines()
    name = step.path if step.before is not None else os.devnull
    return "\n".join(unified_diff(before, after, name, step.path, n=1, lineterm=""))


def _report(call: Invocation, program: SupportedProgram, setting: Setting, steps: list[SetupStep], warnings: list[str]) -> int:
    rows = [{"path": step.path, "state": _describe_result(step)} for step in steps]
    facts = {"program": program.name, "scope": setting.scope.value, "files": rows}
    is_out = all(step.after is None or not step.part.present(step.after) for step in steps)
    lines = [f"{row['path']}: {row['state']}" for row in rows] + [f"Note: {warning}" for warning in warnings]
    if not is_out:
        lines += [f"Guard: {program.guard}", *(f"Next: {step}" for step in program.next)]
    data = {**facts, "guard": None if is_out else program.guard}
    return show(data, as_json=call.json, text="\n".join(lines), warnings=warnings if call.json else [])


def _describe_result(step: SetupStep) -> str:
    if not step.is_change:
        return "already" if step.after and step.part.present(step.after) else "nothing of ours there"
    if step.change is not None:
        return "written"
    return "removed" if step.after is None else "taken out"


def _warnings(program: SupportedProgram, setting: Setting, steps: list[SetupStep]) -> list[str]:
    warnings = [warning for step in steps for warning in step.part.warnings(step.after or "")]
    place = locate(None, setting.project)
    if not place.exists:
        warnings.append(f"nothing is recorded yet: {place.reason}. Run `decklog init`.")
    for step in steps:
        is_local = step.path.endswith(("settings.local.json", "mcp.json")) and setting.plugin_folder is None
        if is_local and not _is_ignored(step.path):
            warnings.append(f"git does not ignore {step.path}; its paths are this machine's, so keep it out of commits")
    if setting.is_enforced and program.name == "claude":
        warnings.append(
            "a version of Claude Code that does not know onFailure ignores it, and lets a call through when the hook fails"
        )
    return warnings if setting.plugin_folder else warnings + _double_setup_warnings(program, setting)


def _double_setup_warnings(program: SupportedProgram, setting: Setting) -> list[str]:
    """Warn if the program is also set up in another way."""
    others = [replace(setting, scope=scope) for scope in program.scopes]
    try:
        twice = [
            f"for the {other.scope.value}"
            for other in others
            if other != setting and any(state_of(part) is not SetupState.MISSING for part in program.parts(other))
        ]
        if program.name == "claude" and any(has_plugin(other) for other in others):
            twice.append("as a plugin")
    except DecklogError:
        return []
    return (
        [] if setting.plugin_folder else [f"it is set up {way} too, so each event is reported twice; remove one" for way in twice]
    )


def _is_ignored(path: str) -> bool:
    folder = os.path.dirname(path)
    if repository(folder) is None:
        return True
    try:
        done = subprocess.run(["git", "-C", folder, "check-ignore", "-q", path], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode != 1


def _codex_config(setting: Setting) -> str:
    """Return the path of Codex's trust settings: the user's, also for a project's hooks."""
    return os.path.join(codex_folder(replace(setting, scope=SetupScope.USER)), "config.toml")


def _list_hooks(setting: Setting) -> list[ListedHook]:
    executable = find_program(PROGRAMS["codex"], setting.environment)
    if executable is None:
        raise Unavailable("codex is not on the path, so it can't be asked about its hooks", hint=BY_HAND)
    return listed(executable, setting.project, setting.environment)


def _trust_state(setting: Setting, hooks_file: str) -> dict[str, SetupState]:
    """Return whether Codex trusts all our hooks in a file."""
    ours = [hook for hook in _list_hooks(setting) if files.real(hook.path) == files.real(hooks_file)]
    is_trusted = bool(ours) and all(hook.is_trusted for hook in ours)
    return {_codex_config(setting): SetupState.INSTALLED if is_trusted else SetupState.MISSING}


def _trust_hooks(setting: Setting, hooks_file: str) -> tuple[list[SetupStep], str | None]:
    """Record the user's trust of our hooks in Codex's settings; return the steps, or a warning if that fails."""
    try:
        hooks = _list_hooks(setting)
        part = trust_of(_codex_config(setting), hooks, hooks_file)
        steps = installer().plan_installation([] if part is None else [part])
        installer().carry_out(steps)
    except DecklogError as problem:
        return [], f"{problem.message}. {problem.hint or BY_HAND}"
    if part is None:
        return [], f"Codex lists none of these hooks: it reads a repository's only where it trusts the folder. {BY_HAND}"
    return steps, None


_OPTIONS = (
    click.option("--check", is_flag=True, help="Only report the state: exit 0 installed, 3 missing, 5 differs."),
    click.option("--remove", is_flag=True, help="Take it out again; each file is what it was before, byte for byte."),
    click.option("--print", "printing", is_flag=True, help="Only show what would be written."),
    click.option("--user", is_flag=True, help="For everything this user does."),
    click.option("--project", is_flag=True, help="For this repository or folder alone."),
)
_SERVER = click.option("--mcp", is_flag=True, help="Have the program start `decklog mcp` too, for its tools.")


def _with_options(function: Callable[..., int]) -> Callable[..., int]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return click.pass_obj(function)


def _program_command(program: SupportedProgram, text: str, *options: Callable[[Any], Any]) -> click.Command:
    """Build the command of a program, with `options` in addition to the common ones."""

    def run(call: Invocation, **asked: Any) -> int:
        return set_up(call, program, asked, **(_editor_settings(asked) if "agents" in asked else {}))

    return build_command(program.name, text, run, *options, *_OPTIONS)


def _editor_settings(asked: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of editors from the given options, and return their settings."""
    agents, enforce = asked.pop("agents"), asked.pop("enforce")
    if not (agents or asked["remove"] or entries((), (), os.environ)):
        sources = ", ".join(agent.source for agent in AGENTS.values())
        raise NotFound("no agent that an editor could start is on the path", hint=f"Install one first: {sources}")
    return {"is_enforced": enforce, "agents": () if asked["remove"] else agents}


def setup_command(name: str, program: "AgentProgram | type[AgentProgram]") -> click.Command:
    """Build the command of an agent program plug-in."""
    plugin = program() if isinstance(program, type) else program

    def parts(setting: Setting) -> list[FilePart]:
        with report_failures(PluginKind.AGENT, name):
            return [WholeFile(path, content) for path, content in plugin.files(setting).items()]

    scopes = tuple(SetupScope(scope) for scope in plugin.scopes)
    known = SupportedProgram(name, plugin.title, parts, scopes, executable=plugin.executable, guard=plugin.guard)
    return _program_command(known, f"Set up {plugin.title}.\n\n{plugin.guard}")


setup = for_the_owner(
    PluginGroup(
        PluginKind.AGENT, setup_command, name="setup", help="Record the sessions of a coding agent here; --remove takes it back."
    )
)


@click.command()
@click.option(
    "--enforce/--no-enforce",
    default=None,
    help="Hold a call also when the hook itself fails. 2.1.325 does; 2.1.197 ignores it and lets the call through.",
)
@click.option("--plugin", metavar="FOLDER", help="Write a plugin's folder instead, which Codex takes too.")
@_SERVER
@_with_options
def claude(call: Invocation, enforce: bool | None, plugin: str | None, **asked: bool) -> int:
    """Register hooks with Claude Code: in .claude/settings.local.json of the repository, or --user in ~/.claude/settings.json.

    Entries of others and comments stay as they are.

    With --plugin FOLDER the settings stay as they are and a plugin is written, with the tools of `decklog mcp`. Install it
    with `claude plugin marketplace add FOLDER` and `claude plugin install decklog@decklog`; in Codex with `codex plugin
    marketplace add FOLDER` and `codex plugin add decklog@decklog`, and trust its hooks there with /hooks.
    """
    if enforce and plugin:
        raise WrongUsage(
            "--enforce is for the settings; a plugin that Codex takes too can't have it", hint="Leave one of them out."
        )
    folder = os.path.abspath(plugin) if plugin else None
    return set_up(call, PROGRAMS["claude"], asked, is_enforced=enforce, plugin_folder=folder)


@click.command()
@click.option("--trust", is_flag=True, help="Trust these hooks in Codex, as /hooks in Codex does; it runs no others.")
@_SERVER
@_with_options
def codex(call: Invocation, trust: bool, **asked: bool) -> int:
    """Register hooks with Codex: in ~/.codex/hooks.json, or --project in .codex/hooks.json of the repository.

    Codex runs only hooks that its user trusts, without a message. --trust asks Codex for the hashes and writes them to its
    config.toml, whose comments stay. Without it, type /hooks in Codex. With --check it reports whether Codex trusts them.
    """
    return set_up(call, PROGRAMS["codex"], asked, is_trusted=trust)


gemini = _program_command(
    PROGRAMS["gemini"],
    "Register hooks with Gemini CLI: in ~/.gemini/settings.json, or --project in .gemini/settings.json of the repository.",
    _SERVER,
)
opencode = _program_command(
    PROGRAMS["opencode"],
    """Write a plugin for opencode, which has no hooks: in ~/.config/opencode/plugins, or --project in .opencode/plugins.

    It records prompts, tools and ends of sessions, and blocks what the policy denies.""",
    _SERVER,
)
cursor = _program_command(
    PROGRAMS["cursor"],
    "Write a rule for Cursor, .cursor/rules/decklog.mdc, with the commands that an agent needs. It records nothing.",
    _SERVER,
)
agents_md = _program_command(
    PROGRAMS["agents-md"],
    """Write the commands that an agent needs as a marked block into AGENTS.md, and CLAUDE.md and GEMINI.md if they are there.

    A file that is a link to AGENTS.md, or takes it in with @AGENTS.md, needs no block.""",
)
_EDITOR_OPTIONS = (
    click.option(
        "--agent", "agents", multiple=True, type=click.Choice([*AGENTS]), help="For this agent; none named means all on the path."
    ),
    click.option("--enforce", is_flag=True, help="Make agents ask before they act, as far as they can be made to."),
)
zed = _program_command(
    PROGRAMS["zed"],
    """Have Zed start agents by `decklog acp`: entries below agent_servers in ~/.config/zed/settings.json.

    They appear in Zed's list of agents as "Claude Code (recorded)" and so on.""",
    *_EDITOR_OPTIONS,
)
jetbrains = _program_command(
    PROGRAMS["jetbrains"],
    "Have JetBrains' editors start agents by `decklog acp`: entries below agent_servers in ~/.jetbrains/acp.json.",
    *_EDITOR_OPTIONS,
)
neovim = _program_command(
    PROGRAMS["neovim"],
    """Write a module for Neovim, lua/decklog_agents.lua, with agents that start by `decklog acp`.

    Your own settings use it with one line: for CodeCompanion adapters = { acp = require("decklog_agents").codecompanion() }, for
    avante acp_providers = require("decklog_agents").avante""",
    *_EDITOR_OPTIONS,
)
