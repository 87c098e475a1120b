"""Command groups: suggestions for unknown commands, examples in the help, and owner-only commands."""

from inspect import cleandoc
from typing import TypeVar

import click

from decklog.cli.suggestions import unknown_command

CommandT = TypeVar("CommandT", bound=click.Command)
OWNER_ONLY_NOTE = "Only for the owner; the policy denies it to agents."
_OWNER_MARK = "is_for_the_owner"


def for_the_owner(command: CommandT) -> CommandT:
    """Mark a command as owner-only, also in its help: the policy denies it to agents."""
    setattr(command, _OWNER_MARK, True)
    command.help = f"{cleandoc(command.help or '')}\n\n{OWNER_ONLY_NOTE}".strip()
    return command


def is_for_the_owner(command: click.Command) -> bool:
    """Return whether a command is marked as owner-only."""
    return getattr(command, _OWNER_MARK, False) is True


class SuggestingGroup(click.Group):
    """A group that suggests the closest command for an unknown one."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "list" and "list" not in self.list_commands(ctx) and "find" in self.list_commands(ctx):
            args = ["find", *args[1:]]
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise unknown_command(ctx.command_path, args[0], self.list_commands(ctx), is_listed=ctx.parent is not None)
        return super().resolve_command(ctx, args)


def add_examples(command: click.Command, path: str) -> click.Command:
    """Put examples at the start of a command's help, and use the first line of the help as its summary."""
    command.short_help = command.short_help or (command.help or "").partition("\n")[0]
    for name, part in getattr(command, "commands", {}).items():
        add_examples(part, f"{path} {name}")
    if (lines := EXAMPLES.get(path)) is None or hasattr(command, "examples"):
        return command
    command.examples = lines  # type: ignore[attr-defined]
    plain = command.format_help_text

    def format_help_text(ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("".join(f"\n  $ {line}" for line in lines) + "\n")
        plain(ctx, formatter)

    command.format_help_text = format_help_text  # type: ignore[method-assign]
    return command


EXAMPLES: dict[str, tuple[str, ...]] = {
    "init": ("decklog init", "decklog --db postgresql://you@host/agents init"),
    "where": ("decklog where",),
    "runs start": ('decklog runs start "Teach the parser to read trailing commas" --run commas',),
    "plan": ('decklog plan "Change the lexer" "Change the parser" --in-order', "decklog plan"),
    "tasks add": ('decklog tasks add commas "Write it down" --task docs --role writer',),
    "tasks edit": ('decklog tasks edit docs --priority 20 --reason "It can wait"',),
    "tasks assign": ("decklog tasks assign docs --worker dev-2",),
    "tasks find": ("decklog tasks find commas --fields id,title,live_status",),
    "tasks board": ("decklog tasks board commas",),
    "tasks claim": ("decklog tasks claim commas --worker dev-2 --role writer",),
    "tasks finish": ('decklog tasks finish docs --fence 1 --summary "Written"',),
    "next": ("decklog next", "decklog next --wait 600 --role tester"),
    "note": ('decklog note "A comma before ] is a separate token" --phase approach',),
    "spend": ("decklog spend claude-sonnet-5-5 --in 9000 --out 500 --cost 0.42",),
    "ask": ('decklog ask "May I push the branch?"', 'git diff | decklog ask "May this be merged?" --about - --wait 600'),
    "standup": ("decklog standup",),
    "critical": ('decklog critical "Stop: this deletes data" --from ana --task docs',),
    "remember": ('decklog remember "Change the lexer before the parser"',),
    "recall": ("decklog recall lexer parser",),
    "done": ('decklog done "Commas are tokens" --evidence "pytest tests/test_lexer.py"',),
    "fail": ('decklog fail "Two tests still fail"',),
    "block": ('decklog block "The grammar is not ours to change"',),
    "prime": ("decklog prime",),
    "approvals ask": ('decklog approvals ask commas "May it be released?" --by dev-1 --about \'"1.2.0"\' --approval release',),
    "approvals find": ("decklog approvals find --state open",),
    "approvals show": ("decklog approvals show release",),
    "approvals decide": ('decklog approvals decide release granted --by ana --rationale "All is green"',),
    "budgets set": ("decklog budgets set run --scope-id commas --limit 5.00",),
    "ledger charge": ("decklog ledger charge claude-sonnet-5-5 --input-tokens 9000 --cost 0.42 --run commas",),
    "ledger burn": ("decklog ledger burn",),
    "cost": ("decklog cost", "decklog cost --by session --days 7"),
    "overview days": ("decklog overview days --by model",),
    "now": ("decklog now", "decklog now --brief"),
    "top": ("decklog top",),
    "runs find": ("decklog runs find --status active",),
    "runs show": ("decklog runs show commas", "decklog runs show commas --at 3"),
    "runs timeline": ("decklog runs timeline commas",),
    "runs diff": ("decklog runs diff commas:1 commas",),
    "runs finish": ('decklog runs finish commas --summary "Trailing commas are read"',),
    "journal find": ("decklog journal find commas --kind reasoning --limit 5",),
    "watch": ("decklog watch commas", "decklog watch --json"),
    "search": ("decklog search lexer token*",),
    "report week": ("decklog report week", "decklog report week --html week.html"),
    "export html": ("decklog export html commas --out commas.html",),
    "export jsonl": ("decklog export jsonl out",),
    "export otlp": ("decklog export otlp commas --file commas.jsonl",),
    "import jsonl": ("decklog import jsonl out",),
    "rebuild": ("decklog rebuild",),
    "verify": ("decklog verify", "decklog verify --anchor ../heads.json", "decklog verify --archives archives"),
    "backup": ("decklog backup copy.db",),
    "restore": ("decklog restore copy.db",),
    "move": ("decklog move ../other.db",),
    "prune": ("decklog prune --older-than 30d",),
    "archive create": ("decklog archive create --before 2026-07-01 --to archives",),
    "archive restore": ("decklog archive restore archives/entries-16-1016.jsonl.gz",),
    "doctor": ("decklog doctor",),
    "migrate": ("decklog migrate --check",),
    "roles": ("decklog roles > roles.sql",),
    "projects create": ("decklog --db postgresql://admin@host/postgres projects create parser",),
    "projects list": ("decklog --db postgresql://admin@host/postgres projects list",),
    "redact": ("env | decklog redact",),
    "completion": ("decklog completion bash",),
    "demo": ("decklog demo",),
}
