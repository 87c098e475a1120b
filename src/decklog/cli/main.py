"""The menu: commands a person needs in words of their own, and every store's verbs with their help."""

import os
from inspect import cleandoc
from typing import Any

import click
from click.shell_completion import CompletionItem

from decklog import __version__
from decklog.cli.call import HAND_WRITTEN, SENTENCES, SHORT_WAY, Invocation, WrongUsage
from decklog.cli.derived import operations
from decklog.cli.examples import with_examples
from decklog.cli.manager import SENTENCE
from decklog.cli.meant import SuggestingGroup
from decklog.log import STORES

# Where each hand-written command lives, and what it does: it is imported when it is called, and a line of help is not worth that.
COMMANDS = {
    "help": ("help", "Show every command (`all`), or what one command takes."),
    "start": ("start", "Set up Decklog in this repository with a few questions, from the log to the first recorded session."),
    "init": ("setup", "Create a log for this repository or folder, or use the one it has."),
    "where": ("setup", "Show which log is used here, and how it was found."),
    "accept": ("setup", "Trust the log found in this directory."),
    "migrate": ("setup", "Bring the log's schema up to date, and a SQLite file's journal mode back to WAL."),
    "roles": (
        "setup",
        "Write the SQL that creates PostgreSQL roles for readers, agents and managers; the database owner runs it.",
    ),
    "projects": ("setup", "Create and list the databases of several teams on one PostgreSQL server."),
    "now": ("overview", "Show what needs a person, what runs, what has stalled and what it costs."),
    "cost": ("ledger", "Show what was spent, by model, day, session or repository."),
    "top": ("overview", "Show `now` live, on the whole terminal: move, open, read, approve or deny, quit."),
    "serve": (
        "overview",
        "Open the dashboard on this machine: what runs, what it costs, what waits for a decision, and any run at any moment.",
    ),
    "notify": ("notify", "Send notifications by the rules of `decklog notices`."),
    "doctor": (
        "health",
        "Check engine, file, pages, leases, budgets and locks; name problems and how to fix them.",
    ),
    "setup": ("agent_setup", "Record the sessions of a coding agent here; --remove takes it back."),
    "mcp": ("agent_setup", "Serve tools to agents by the Model Context Protocol: next, done, note, ask and others."),
    "acp": ("agent_setup", "Proxy between an editor and its agent: record the session and judge tool calls."),
    "verify": ("health", "Verify the hash chains and every record; name the first problem (exit 1)."),
    "rebuild": ("health", "Rebuild what the log derives from its journal: sums, counts and the search index."),
    "sessions": ("sessions", "List, search, read and resume recorded sessions of coding agents."),
    "watch": ("journal", "Show entries as they happen, of one run or of all."),
    "search": ("journal", "Find entries that have all the words, newest first; `word*` matches a beginning."),
    "why": (
        "origins.why",
        "Show where a line comes from: prompt, tool call, task, checks, approval, cost and earlier version.",
    ),
    "commit": ("origins.commit", "Show a commit by origin: files, shares of agents and people, sessions, tasks and cost."),
    "stats": ("origins.stats", "Count lines written and kept by agents and people, and the cost of each kept line."),
    "notes": (
        "origins.notes",
        "Exchange the origins of lines as Git AI notes or Agent Trace records; import Entire's branch.",
    ),
    "blame": (
        "provenance.blame",
        "Show who wrote each line of a file: agent, session and task where they are known, otherwise git's author.",
    ),
    "attribute": ("origins.attribute", "Write the note of a squash merge from the notes of the merged commits; a step for CI."),
    "rewind": (
        "origins.rewind",
        "Restore the worktree to the state before an agent's turn; the present state is saved first.",
    ),
    "redact": ("redact", "Copy text from a file or stdin to stdout with its secrets replaced by `[redacted:KIND]`."),
    "tools": ("tools", "Judge commands and paths, and use an agent's tools."),
    "run": (
        "conductor.run",
        "Work on a goal or a plan here: agents work in parallel, checks decide, and one merge queue lands what passes.",
    ),
    "review": (
        "gate.review",
        "Review a change in seven stages: pass, request-changes, block or unproven (exit 0, 1, 6, 7).",
    ),
    "critical": (
        "gate.talk",
        "Send agents an urgent message. It is acknowledged at once; from the owner it pauses the task it names.",
    ),
    "standup": (
        "gate.talk",
        "Report the day: what was done yesterday, what is in progress, obstacles, costs and open questions.",
    ),
    "mend": (
        "mending.mend",
        "Fix feedback with a test that fails before the fix and passes after it; without an id, list what is open.",
    ),
    "prompt": ("gate.prompt", "Show the prompt of a call site: its parts, their order, and about how many tokens."),
    "report": ("report", "Summarize all runs as Markdown or as an HTML page."),
    "export": ("transfer", "Write a log, or one run of it, in another form."),
    "import": ("exchange.importing", "Import sessions, data of other trackers, or an exported log."),
    "sync": ("exchange.syncing", "Sync a run with another tracker, both ways."),
    "receive": ("exchange.telemetry", "Receive spans of OpenTelemetry from other programs."),
    "move": ("transfer", "Copy a whole log to another file or server, and verify the copy."),
    "backup": ("transfer", "Write a consistent copy of the log, as a SQLite file, while others go on writing."),
    "restore": ("transfer", "Replace a log by a backup."),
    "recover": ("transfer", "Recover a damaged SQLite file into a new log, and report what is missing."),
    "prune": ("transfer", "Drop old texts; their digests stay, so the log still verifies. Without --apply nothing is changed."),
    "archive": ("exchange.archive", "Move the entries of old runs of a PostgreSQL log to files, and bring them back."),
    "plugins": ("exchange.plugins", "List the installed plug-ins, and the packages they came with."),
    "completion": ("help", "Print a script that completes commands in bash, zsh or fish."),
    "demo": ("demo", "Watch workers share a run, one of them killed in the middle, and nothing lost."),
    "bazinga": ("bazinga", "Run a command of bazinga-db; prompts and scripts written for it keep working."),
}

# The first screen of the help, in the order in which people need it; `help all` has every command.
FIRST = (
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
_MORE = "Every command: decklog help all. One command: decklog COMMAND --help."

# Set by the script of `decklog completion`: click then answers with completions.
_COMPLETING = "_DECKLOG_COMPLETE"

EXITS_AND_OPTIONS = """Every command takes --json, --brief, --fields A,B, --no-color and --db PATH|URL;
those that write also --agent NAME and --agent-id ID.
Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 not permitted, 5 conflict, 6 refused, 7 pending, 75 busy, 124 timed out."""


def spelled(name: str) -> str:
    """Spell a name of ours as people type it."""
    return name.replace("_", "-")


class Menu(SuggestingGroup):
    """Lists everything, and imports only what is chosen."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [*SHORT_WAY, *COMMANDS, *map(spelled, STORES)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the commands that people need first, in groups."""
        formatter.write_text(self.help or "")
        size = max(len(words) for _, commands in FIRST for words, _ in commands)
        for title, commands in FIRST:
            formatter.write(f"\n{title}\n")
            for words, summary in commands:
                formatter.write(f"  {ctx.command_path} {words:<{size}}  {summary}\n")
        formatter.write(f"\n{_MORE}\n")

    def format_all(self, ctx: click.Context) -> str:
        """Write out every command with its summary."""
        formatter = ctx.make_formatter()
        super().format_help(ctx, formatter)
        return formatter.getvalue()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command from the table of summaries: importing every command for one word takes too long."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        summaries = self._summaries()
        return [CompletionItem(name, help=summaries.get(name)) for name in self.list_commands(ctx) if name.startswith(incomplete)]

    def _summaries(self) -> dict[str, str]:
        commands = {name: summary for name, (_, summary) in COMMANDS.items()}
        return commands | {spelled(name): summary for name, summary in STORES.items()}

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their summaries from a table: importing all of them for one line each takes too long."""
        from decklog.shortcuts.verbs import VERBS

        short = {name: (verb.__doc__ or "").partition("\n")[0] for name, verb in VERBS.items()}
        summaries = {name: summary for name, (_, summary) in COMMANDS.items()}
        stores = {spelled(name): summary for name, summary in STORES.items()}
        sections = {"For agents: run, task, worker and fence are found": short, "Commands": summaries, "What a log keeps": stores}
        for title, section in sections.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()))

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name in SHORT_WAY:
            return with_examples(_short(name), name)
        if name in COMMANDS:
            return with_examples(_written(COMMANDS[name][0], name), name)
        if (store := name.replace("-", "_")) in STORES:
            return _store_menu(store)
        return None


def _store_menu(store: str) -> click.Group:
    from decklog.log import store_class

    menu = _group_of(store)(spelled(store), help=store_class(store).__doc__)
    for verb, operation in operations(store).items():
        menu.add_command(_verb(store, verb, operation))
    for verb in HAND_WRITTEN.get(store, ()):
        menu.add_command(_written(store, verb))
    with_examples(menu, spelled(store))
    return menu


def _group_of(store: str) -> type[click.Group]:
    """Return the kind of menu that a store has: of those that take a sentence, one that does."""
    if store not in SENTENCES:
        return SuggestingGroup
    from importlib import import_module

    found: type[click.Group] = import_module(f"decklog.cli.commands.mending.{store}").Sentences
    return found


def _written(module: str, name: str) -> click.Command:
    from importlib import import_module
    from keyword import iskeyword

    function = f"{name}_" if iskeyword(name) else name
    command: click.Command = getattr(import_module(f"decklog.cli.commands.{module}"), function)
    return command


def _verb(store: str, verb: str, operation: Any) -> click.Command:
    """Describe a verb to click, which shows its help; running it is the signature's business."""
    from decklog.cli.parameters import parameters_of

    found = parameters_of(operation)
    text = cleandoc(operation.function.__doc__ or "") + _choices(found)
    if operation.manager_only:
        text += f"\n\n{SENTENCE}"
    params = _described(found, store, operation.name)
    return click.Command(verb, params=params, callback=_run_elsewhere, help=text, short_help=operation.summary)


def _short(name: str) -> click.Command:
    """Describe a command of the short way to click, from the same signature that runs it."""
    from decklog.cli.parameter_help import SHORT
    from decklog.cli.short.program import parameters
    from decklog.shortcuts.verbs import VERBS

    found = parameters(name)
    text = cleandoc(VERBS[name].__doc__ or "") + _choices(found)
    return click.Command(name, params=_described(found, SHORT, name), callback=_run_elsewhere, help=text)


def _run_elsewhere(**_: Any) -> None:
    raise AssertionError("verbs are run from their words")


def _choices(parameters: list[Any]) -> str:
    """Return what words stand for a place that takes one of a few."""
    choices = ((parameter.said.upper(), parameter.shown) for parameter in parameters if parameter.positional)
    return "".join(f"\n\n{name} is one of {shown.replace('|', ', ')}." for name, shown in choices if "|" in shown)


def _described(parameters: list[Any], store: str, verb: str) -> list[click.Parameter]:
    from decklog.cli.parameter_help import parameter_help

    described: list[click.Parameter] = []
    for parameter in parameters:
        if parameter.positional:
            count = -1 if parameter.takes_rest else 1
            described.append(click.Argument([parameter.said], required=parameter.required, nargs=count))
        else:
            described.append(_option(parameter, parameter_help(store, verb, parameter.name) or ""))
    return described


def _option(parameter: Any, text: str) -> click.Option:
    default = parameter.default
    if parameter.is_flag:
        flag = f"{parameter.flag}/--no-{parameter.flag[2:]}" if default else parameter.flag
        return click.Option([flag], is_flag=True, default=bool(default), help=f"{text} (on by default)" if default else text)
    shown = f"default {getattr(default, 'value', default)}" if default not in (None, "", 0) else ""
    help_text = "; ".join(part for part in (text, shown) if part)
    return click.Option([parameter.flag], metavar=parameter.shown, help=help_text, required=parameter.required)


@click.group(cls=Menu, epilog=EXITS_AND_OPTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version=__version__, prog_name="decklog")
def menu() -> None:
    """Audit log, task queue and spending limits for coding agents."""


def run_command(call: Invocation) -> int:
    """Run a hand-written command, or show help."""
    if not call.words and _COMPLETING not in os.environ:
        from decklog.cli.screens.now import welcome

        return welcome(call)
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
        return 0  # click ends the program when the reader of its output went away
    return result if isinstance(result, int) else 0
