"""The main menu: hand-written commands, shortcuts, and the verbs of every store."""

import os
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING

import click

from decklog import __version__
from decklog.cli.call import SHORTCUTS, Invocation, WrongUsage
from decklog.cli.groups import SuggestingGroup, add_examples

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# The module and the summary of each hand-written command. The summary is here because help must not import every command.
COMMANDS = {
    "help": ("help", "Show every command (`all`), or what one command takes."),
    "start": ("setup", "Set up Decklog in this repository with a few questions, from the log to the first recorded session."),
    "init": ("setup", "Create a log for this repository or folder, or use the one it has."),
    "where": ("log", "Show which log is used here, and how it was found."),
    "accept": ("access", "Trust the log found in this directory."),
    "migrate": ("log", "Bring the log's schema up to date, and a SQLite file's journal mode back to WAL."),
    "roles": (
        "log",
        "Write the SQL that creates PostgreSQL roles for readers, agents and managers; the database owner runs it.",
    ),
    "projects": ("access", "Create and list the databases of several teams on one PostgreSQL server."),
    "now": ("overview", "Show what needs a person, what runs, what has stalled and what it costs."),
    "cost": ("overview", "Show what was spent, by model, day, session or repository."),
    "top": ("overview", "Show `now` live, on the whole terminal: move, open, read, approve or deny, quit."),
    "serve": (
        "serving",
        "Open the dashboard on this machine: what runs, what it costs, what waits for a decision, and any run at any moment.",
    ),
    "notify": ("messages", "Send notifications by the rules of `decklog notices`."),
    "doctor": (
        "doctor",
        "Check engine, file, pages, leases, budgets and locks; name problems and how to fix them.",
    ),
    "setup": ("agent_setup", "Record the sessions of a coding agent here; --remove takes it back."),
    "mcp": ("serving", "Serve tools to agents by the Model Context Protocol: next, done, note, ask and others."),
    "acp": ("serving", "Proxy between an editor and its agent: record the session and judge tool calls."),
    "verify": ("log", "Verify the hash chains and every record; name the first problem (exit 1)."),
    "rebuild": ("log", "Rebuild what the log derives from its journal: sums, counts and the search index."),
    "sessions": ("sessions", "List, search, read and resume recorded sessions of coding agents."),
    "watch": ("log", "Show entries as they happen, of one run or of all."),
    "search": ("log", "Find entries that have all the words, newest first; `word*` matches a beginning."),
    "why": (
        "origins",
        "Show where a line comes from: prompt, tool call, task, checks, approval, cost and earlier version.",
    ),
    "commit": ("origins", "Show a commit by origin: files, shares of agents and people, sessions, tasks and cost."),
    "stats": ("origins", "Count lines written and kept by agents and people, and the cost of each kept line."),
    "notes": (
        "notes",
        "Exchange the origins of lines as Git AI notes or Agent Trace records; import Entire's branch.",
    ),
    "blame": (
        "origins",
        "Show who wrote each line of a file: agent, session and task where they are known, otherwise git's author.",
    ),
    "attribute": ("notes", "Write the note of a squash merge from the notes of the merged commits; a step for CI."),
    "rewind": (
        "origins",
        "Restore the worktree to the state before an agent's turn; the present state is saved first.",
    ),
    "redact": ("tools", "Copy text from a file or stdin to stdout with its secrets replaced by `[redacted:KIND]`."),
    "tools": ("tools", "Judge commands and paths, and use an agent's tools."),
    "run": (
        "conductor.run",
        "Work on a goal or a plan here: agents work in parallel, checks decide, and one merge queue lands what passes.",
    ),
    "review": (
        "review",
        "Review a change in seven stages: pass, request-changes, block or unproven (exit 0, 1, 6, 7).",
    ),
    "critical": (
        "messages",
        "Send agents an urgent message. It is acknowledged at once; from the owner it pauses the task it names.",
    ),
    "standup": (
        "messages",
        "Report the day: what was done yesterday, what is in progress, obstacles, costs and open questions.",
    ),
    "mend": (
        "mend",
        "Fix feedback with a test that fails before the fix and passes after it; without an id, list what is open.",
    ),
    "prompt": ("review", "Show the prompt of a call site: its parts, their order, and about how many tokens."),
    "report": ("messages", "Summarize all runs as Markdown or as an HTML page."),
    "export": ("exchange.exporting", "Write a log, or one run of it, in another form."),
    "import": ("exchange.importing", "Import sessions, data of other trackers, or an exported log."),
    "sync": ("exchange.exporting", "Sync a run with another tracker, both ways."),
    "receive": ("exchange.exporting", "Receive spans of OpenTelemetry from other programs."),
    "move": ("transfer", "Copy a whole log to another file or server, and verify the copy."),
    "backup": ("transfer", "Write a consistent copy of the log, as a SQLite file, while others go on writing."),
    "restore": ("transfer", "Replace a log by a backup."),
    "recover": ("transfer", "Recover a damaged SQLite file into a new log, and report what is missing."),
    "prune": ("transfer", "Drop old texts; their digests stay, so the log still verifies. Without --apply nothing is changed."),
    "archive": ("transfer", "Move the entries of old runs of a PostgreSQL log to files, and bring them back."),
    "plugins": ("help", "List the installed plug-ins, and the packages they came with."),
    "completion": ("help", "Print a script that completes commands in bash, zsh or fish."),
    "demo": ("demo", "Watch workers share a run, one of them killed in the middle, and nothing lost."),
    "bazinga": ("exchange.importing", "Run a command of bazinga-db; prompts and scripts written for it keep working."),
}

# The first screen of the help, ordered by first use; `help all` lists every command.
FIRST_SCREEN = (
    ("Start", (("start", "set up this repository with a few questions"), ("init", "only create the log"))),
    (
        "Record",
        (
            ("setup claude", "record new sessions; also codex, gemini, opencode, …"),
            ("import claude", "import sessions you already have; also codex, …"),
            ("sessions", "list, search, read and resume them"),
        ),
    ),
    (
        "See",
        (
            ("now", "what needs attention, what runs, what it costs"),
            ("cost", "what was spent, by model, day, session or repository"),
            ("why FILE:LINE", "who wrote a line: prompt, task, cost; also blame"),
            ("serve", "open the dashboard in a browser"),
            ("report week", "one week over all runs, as Markdown or HTML"),
        ),
    ),
    (
        "Work",
        (
            ('run "GOAL"', "let agents work on a goal or a plan here"),
            ('plan "TITLE" …', "add tasks; without titles, list them"),
            ("next", "agents: get a task"),
            ('done "WHAT"', "agents: finish it"),
            ('ask "QUESTION"', "agents: ask a person"),
        ),
    ),
    (
        "Control",
        (
            ("budgets set", "limit what may be spent"),
            ("approvals find", "questions from agents; `approvals decide` answers"),
        ),
    ),
    ("Check", (("verify", "prove that no entry was changed"), ("doctor", "look for problems and how to fix them"))),
)
_MORE_HELP = "Every command: decklog help all. One command: decklog COMMAND --help."

# Set by the script of `decklog completion`: click then answers with completions.
_COMPLETING = "_DECKLOG_COMPLETE"

EXITS_AND_OPTIONS = """Every command takes --json, --brief, --fields A,B, --no-color and --db PATH|URL;
those that write also --agent NAME and --agent-id ID.
Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 not permitted, 5 conflict, 6 refused, 7 pending, 75 busy, 124 timed out."""


def find_stores() -> dict[str, str]:
    """Return the stores with their summaries. Import their module late: help and `where` start faster without it."""
    from decklog.log import STORES

    return STORES


def _summaries() -> dict[str, str]:
    return {name: summary for name, (_, summary) in COMMANDS.items()}


def _store_summaries() -> dict[str, str]:
    """Return the stores, as typed on the command line, with their summaries."""
    return {name.replace("_", "-"): summary for name, summary in find_stores().items()}


class Menu(SuggestingGroup):
    """The main menu, which imports a command only when it is called."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [*SHORTCUTS, *COMMANDS, *_store_summaries()]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first screen of the help."""
        formatter.write_text(self.help or "")
        size = max(len(words) for _, commands in FIRST_SCREEN for words, _ in commands)
        for title, commands in FIRST_SCREEN:
            formatter.write(f"\n{title}\n")
            for words, summary in commands:
                formatter.write(f"  {ctx.command_path} {words:<{size}}  {summary}\n")
        formatter.write(f"\n{_MORE_HELP}\n")

    def format_all(self, ctx: click.Context) -> str:
        """Return every command with its summary."""
        formatter = ctx.make_formatter()
        super().format_help(ctx, formatter)
        return formatter.getvalue()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete a command from the table of summaries. Importing every command would be slow."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        summaries = _summaries() | _store_summaries()
        return [CompletionItem(name, help=summaries.get(name)) for name in self.list_commands(ctx) if name.startswith(incomplete)]

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their summaries from a table. Importing every command would be slow."""
        from decklog.shortcuts.verbs import VERBS

        short = {name: (verb.__doc__ or "").partition("\n")[0] for name, verb in VERBS.items()}
        sections = {"For agents: run, task, worker and fence are detected": short, "Commands": _summaries()}
        for title, section in {**sections, "What a log keeps": _store_summaries()}.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()))

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS:
            return add_examples(load_command(COMMANDS[name][0], f"{name}_" if iskeyword(name) else name), name)
        if name not in SHORTCUTS and name.replace("-", "_") not in find_stores():
            return None
        from decklog.cli.store_menu import StoreMenu, describe_shortcut

        if name in SHORTCUTS:
            return add_examples(describe_shortcut(name), name)
        return StoreMenu(name.replace("-", "_"), load_command)


def load_command(module: str, name: str) -> click.Command:
    """Import a hand-written command: the only place that imports modules of commands."""
    command: click.Command = getattr(import_module(f"decklog.cli.commands.{module}"), name)
    return command


@click.group(cls=Menu, epilog=EXITS_AND_OPTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version=__version__, prog_name="decklog")
def menu() -> None:
    """Audit log, task queue and spending limits for coding agents."""


def run_command(call: Invocation) -> int:
    """Run a hand-written command, or show help."""
    if not call.words and _COMPLETING not in os.environ:
        from decklog.cli.screens.now import show_welcome

        return show_welcome(call)
    try:
        result = menu.main(args=call.words, prog_name="decklog", standalone_mode=False, obj=call)
    except click.exceptions.NoArgsIsHelpError as menu_help:
        click.echo(menu_help.ctx.get_help())
        return 0
    except click.UsageError as problem:
        context = f" Try: {problem.ctx.command_path} --help" if problem.ctx else ""
        raise WrongUsage(problem.format_message(), hint=context.strip() or None) from None
    except click.Abort:
        return 130
    except SystemExit:
        return 0  # click exits when the reader closed the pipe
    return result if isinstance(result, int) else 0
