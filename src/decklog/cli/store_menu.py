"""Help for the verbs of stores and for shortcuts, generated from their signatures."""

from collections.abc import Callable
from inspect import cleandoc
from typing import Any

import click

from decklog.cli.call import HAND_WRITTEN, SENTENCES
from decklog.cli.groups import OWNER_ONLY_NOTE, SuggestingGroup, add_examples
from decklog.cli.parameter_help import SHORT, parameter_help
from decklog.cli.parameters import list_parameters
from decklog.cli.store_verbs import load_operations
from decklog.log import store_class


class StoreMenu(SuggestingGroup):
    """The commands of one store, each described or imported by `load` on demand."""

    def __init__(self, store: str, load: Callable[[str, str], click.Command]) -> None:
        super().__init__(store.replace("_", "-"), help=store_class(store).__doc__)
        self._store = store
        self._load = load

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted({*load_operations(self._store), *HAND_WRITTEN.get(self._store, ())})

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if (place := HAND_WRITTEN.get(self._store, {}).get(name)) is not None:
            return add_examples(self._load(*place), f"{self.name} {name}")
        operation = load_operations(self._store).get(name)
        return None if operation is None else add_examples(_describe_verb(self._store, name, operation), f"{self.name} {name}")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs with their summaries. Building every command for one line each would be slow."""
        known = load_operations(self._store)
        summaries = [(name, known[name].summary if name in known else self._summary(name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(summaries)

    def _summary(self, verb: str) -> str:
        """Return the summary of a hand-written verb."""
        return (self._load(*HAND_WRITTEN[self._store][verb]).help or "").partition("\n")[0]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Accept a sentence in place of a verb, for stores that support it."""
        if self._store in SENTENCES and " " in args[0].strip():
            return "say", self._load(*SENTENCES[self._store]), args
        return super().resolve_command(ctx, args)


def _describe_verb(store: str, verb: str, operation: Any) -> click.Command:
    """Build the click command of a verb for its help; `run_operation` runs the verb."""
    found = list_parameters(operation)
    text = cleandoc(operation.function.__doc__ or "") + _describe_choices(found)
    if operation.owner_only:
        text += f"\n\n{OWNER_ONLY_NOTE}"
    params = _build_params(found, store, operation.name)
    return click.Command(verb, params=params, callback=_refuse_to_run, help=text, short_help=operation.summary)


def describe_shortcut(name: str) -> click.Command:
    """Build the click command of a shortcut for its help; `run_shortcut` runs it."""
    from decklog.cli.shortcuts import shortcut_parameters
    from decklog.shortcuts.verbs import VERBS

    found = shortcut_parameters(name)
    text = cleandoc(VERBS[name].__doc__ or "") + _describe_choices(found)
    return click.Command(name, params=_build_params(found, SHORT, name), callback=_refuse_to_run, help=text)


def _refuse_to_run(**_: Any) -> None:
    raise AssertionError("click only shows the help of this command")


def _describe_choices(parameters: list[Any]) -> str:
    """List the choices of positional arguments."""
    choices = ((parameter.cli_name.upper(), parameter.metavar) for parameter in parameters if parameter.positional)
    return "".join(f"\n\n{name} is one of {words.replace('|', ', ')}." for name, words in choices if "|" in words)


def _build_params(parameters: list[Any], store: str, verb: str) -> list[click.Parameter]:
    described: list[click.Parameter] = []
    for parameter in parameters:
        if parameter.positional:
            count = -1 if parameter.takes_rest else 1
            described.append(click.Argument([parameter.cli_name], required=parameter.required, nargs=count))
        else:
            described.append(_build_option(parameter, parameter_help(store, verb, parameter.name) or ""))
    return described


def _build_option(parameter: Any, text: str) -> click.Option:
    default = parameter.default
    if parameter.is_flag:
        flag = f"{parameter.flag}/--no-{parameter.flag[2:]}" if default else parameter.flag
        return click.Option([flag], is_flag=True, default=bool(default), help=f"{text} (on by default)" if default else text)
    shown = f"default {getattr(default, 'value', default)}" if default not in (None, "", 0) else ""
    help_text = "; ".join(part for part in (text, shown) if part)
    return click.Option([parameter.flag], metavar=parameter.metavar, help=help_text, required=parameter.required)
