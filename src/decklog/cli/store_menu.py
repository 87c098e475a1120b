"""Help of the verbs of stores and of shortcuts, from their signatures."""

from collections.abc import Callable
from inspect import cleandoc
from typing import Any

import click

from decklog.cli.call import HAND_WRITTEN, SENTENCES
from decklog.cli.derived import operations
from decklog.cli.groups import SENTENCE, SuggestingGroup, with_examples
from decklog.cli.parameter_help import SHORT, parameter_help
from decklog.cli.parameters import parameters_of
from decklog.log import store_class


class StoreMenu(SuggestingGroup):
    """The commands of one store; each is described, or imported by `load`, when it is needed."""

    def __init__(self, store: str, load: Callable[[str, str], click.Command]) -> None:
        super().__init__(store.replace("_", "-"), help=store_class(store).__doc__)
        self._store = store
        self._load = load

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted({*operations(self._store), *HAND_WRITTEN.get(self._store, ())})

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if (place := HAND_WRITTEN.get(self._store, {}).get(name)) is not None:
            return with_examples(self._load(*place), f"{self.name} {name}")
        operation = operations(self._store).get(name)
        return None if operation is None else with_examples(_describe_verb(self._store, name, operation), f"{self.name} {name}")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs by their summaries: describing every parameter of each for one line takes too long."""
        known = operations(self._store)
        summaries = [(name, known[name].summary if name in known else self._summary(name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(summaries)

    def _summary(self, verb: str) -> str:
        """Return the summary of a hand-written verb."""
        return (self._load(*HAND_WRITTEN[self._store][verb]).help or "").partition("\n")[0]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Take a sentence where a verb could stand, for stores that accept one."""
        if self._store in SENTENCES and " " in args[0].strip():
            return "say", self._load(*SENTENCES[self._store]), args
        return super().resolve_command(ctx, args)


def _describe_verb(store: str, verb: str, operation: Any) -> click.Command:
    """Describe a verb to click, which shows its help; running it is the signature's business."""
    found = parameters_of(operation)
    text = cleandoc(operation.function.__doc__ or "") + _choices(found)
    if operation.owner_only:
        text += f"\n\n{SENTENCE}"
    params = _described(found, store, operation.name)
    return click.Command(verb, params=params, callback=_run_elsewhere, help=text, short_help=operation.summary)


def describe_shortcut(name: str) -> click.Command:
    """Describe a shortcut to click, from the signature that runs it."""
    from decklog.cli.shortcuts import parameters
    from decklog.shortcuts.verbs import VERBS

    found = parameters(name)
    text = cleandoc(VERBS[name].__doc__ or "") + _choices(found)
    return click.Command(name, params=_described(found, SHORT, name), callback=_run_elsewhere, help=text)


def _run_elsewhere(**_: Any) -> None:
    raise AssertionError("verbs are run from their words")


def _choices(parameters: list[Any]) -> str:
    """Return what words stand for a place that takes one of a few."""
    choices = ((parameter.cli_name.upper(), parameter.shown) for parameter in parameters if parameter.positional)
    return "".join(f"\n\n{name} is one of {shown.replace('|', ', ')}." for name, shown in choices if "|" in shown)


def _described(parameters: list[Any], store: str, verb: str) -> list[click.Parameter]:
    described: list[click.Parameter] = []
    for parameter in parameters:
        if parameter.positional:
            count = -1 if parameter.takes_rest else 1
            described.append(click.Argument([parameter.cli_name], required=parameter.required, nargs=count))
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
