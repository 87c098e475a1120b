"""Set up coding agents and editors to be recorded; serve MCP and ACP."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from decklog.agents.setup.parts import AGENTS, FilePart, WholeFile, entries
from decklog.agents.setup.supported import PROGRAMS, Setting, SetupScope, SupportedProgram
from decklog.cli.agent_programs.setting_up import serve_mcp, set_up
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.commands.exchange.plugins import PluginGroup
from decklog.cli.manager import for_the_manager
from decklog.core.errors import NotFound
from decklog.core.plugins import PluginKind
from decklog.hooks.proxy.relay import run

if TYPE_CHECKING:
    from decklog.plugins import AgentProgram

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


def setup_command(name: str, program: "AgentProgram | type[AgentProgram]") -> click.Command:
    """Build the command of an agent program plug-in."""
    made = program() if isinstance(program, type) else program

    def parts(setting: Setting) -> list[FilePart]:
        return [WholeFile(path, content) for path, content in made.files(setting).items()]

    scopes = tuple(SetupScope(scope) for scope in made.scopes)
    known = SupportedProgram(name, made.title, parts, scopes, executable=made.executable, guard=made.guard)

    @click.command(name, help=f"Set up {made.title}.\n\n{made.guard}")
    @_with_options
    def command(call: Invocation, **asked: bool) -> int:
        return set_up(call, known, asked)

    return command


setup = for_the_manager(
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


@click.command()
@_SERVER
@_with_options
def gemini(call: Invocation, **asked: bool) -> int:
    """Register hooks with Gemini CLI: in ~/.gemini/settings.json, or --project in .gemini/settings.json of the repository."""
    return set_up(call, PROGRAMS["gemini"], asked)


@click.command()
@_SERVER
@_with_options
def opencode(call: Invocation, **asked: bool) -> int:
    """Write a plugin for opencode, which has no hooks: in ~/.config/opencode/plugins, or --project in .opencode/plugins.

    It records prompts, tools and ends of sessions, and blocks what the policy denies.
    """
    return set_up(call, PROGRAMS["opencode"], asked)


@click.command()
@_SERVER
@_with_options
def cursor(call: Invocation, **asked: bool) -> int:
    """Write a rule for Cursor, .cursor/rules/decklog.mdc, with the commands that an agent needs. It records nothing."""
    return set_up(call, PROGRAMS["cursor"], asked)


@click.command("agents-md")
@_with_options
def agents_md(call: Invocation, **asked: bool) -> int:
    """Write the commands that an agent needs as a marked block into AGENTS.md, and CLAUDE.md and GEMINI.md if they are there.

    A file that is a link to AGENTS.md, or takes it in with @AGENTS.md, needs no block.
    """
    return set_up(call, PROGRAMS["agents-md"], asked)


@click.command()
@click.option("--http", "port", type=click.IntRange(0, 65535), metavar="PORT", help="On HTTP of this machine; 0 takes any.")
@click.option("--token-file", metavar="FILE", help="The token is in this file, or is put there if there is none.")
@click.pass_obj
def mcp(call: Invocation, port: int | None, token_file: str | None) -> int:
    """Serve tools to agents by the Model Context Protocol: next, done, note, ask and others.

    On standard input and output, for the program that starts it. A log that is not there yet is looked for at every call.

    With --http it answers on 127.0.0.1 alone. Each request shows a token: from --token-file, which only its user may be able to
    read, from DECKLOG_MCP_TOKEN, or a new one that is shown on the terminal once. The header Decklog-Worker names the client's
    worker; without it the session does.
    """
    return serve_mcp(call, port, token_file)


def _of_editors(function: Callable[..., int]) -> Callable[..., int]:
    named = click.option(
        "--agent", "agents", multiple=True, type=click.Choice([*AGENTS]), help="For this agent; none named means all on the path."
    )
    enforced = click.option("--enforce", is_flag=True, help="Make agents ask before they act, as far as they can be made to.")
    return named(enforced(_with_options(function)))


def _set_up_editor(call: Invocation, name: str, agents: tuple[str, ...], enforce: bool, asked: dict[str, bool]) -> int:
    is_taken_out = asked["remove"]
    if not (agents or is_taken_out or entries((), (), os.environ)):
        sources = ", ".join(agent.source for agent in AGENTS.values())
        raise NotFound("no agent that an editor could start is on the path", hint=f"Install one first: {sources}")
    return set_up(call, PROGRAMS[name], asked, is_enforced=enforce, agents=() if is_taken_out else agents)


@click.command()
@_of_editors
def zed(call: Invocation, agents: tuple[str, ...], enforce: bool, **asked: bool) -> int:
    """Have Zed start agents by `decklog acp`: entries below agent_servers in ~/.config/zed/settings.json.

    They appear in Zed's list of agents as "Claude Code, on record" and so on.
    """
    return _set_up_editor(call, "zed", agents, enforce, asked)


@click.command()
@_of_editors
def jetbrains(call: Invocation, agents: tuple[str, ...], enforce: bool, **asked: bool) -> int:
    """Have JetBrains' editors start agents by `decklog acp`: entries below agent_servers in ~/.jetbrains/acp.json."""
    return _set_up_editor(call, "jetbrains", agents, enforce, asked)


@click.command()
@_of_editors
def neovim(call: Invocation, agents: tuple[str, ...], enforce: bool, **asked: bool) -> int:
    """Write a module for Neovim, lua/decklog_agents.lua, with agents that start by `decklog acp`.

    Your own settings use it with one line: for CodeCompanion adapters = { acp = require("decklog_agents").codecompanion() }, for
    avante acp_providers = require("decklog_agents").avante
    """
    return _set_up_editor(call, "neovim", agents, enforce, asked)


@for_the_manager
@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--enforce", is_flag=True, help="Make the agent ask before it acts, as far as it can be made to; on record.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True)
@click.pass_obj
def acp(call: Invocation, enforce: bool, command: tuple[str, ...]) -> int:
    """Proxy between an editor and its agent: record the session and judge tool calls.

    An editor calls this in the place of an agent that speaks the Agent Client Protocol, with the agent's own command behind --:

        decklog acp -- claude-agent-acp

    Every line goes on as it came. What the agent asks permission for is judged by the policy first: what is denied is answered in
    the person's place, everything else goes to the person. What an agent does not ask for can't be blocked here.
    """
    return run(list(command), db=call.db, is_enforced=enforce)
