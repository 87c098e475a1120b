"""Every option of the command line and every parameter of a verb has a description."""

import click
import pytest

from decklog.cli.parameter_help import parameter_help, shared_help
from decklog.cli.parameters import list_parameters
from decklog.log import STORES, store_class
from decklog.records.operations import operations_of
from tests.registry import commands


def test_every_option_has_a_description() -> None:
    options = [(path, param) for path, command, _ in commands() for param in command.params if isinstance(param, click.Option)]
    assert len(options) > 1000
    assert [f"{path} {option.opts[0]}" for path, option in options if not (option.help or "").partition("; default ")[0]] == []


@pytest.mark.parametrize("store", STORES)
def test_every_parameter_of_a_verb_has_a_description(store: str) -> None:
    missing = [
        f"{store}.{operation.name}: {parameter.name}"
        for operation in operations_of(store_class(store))
        for parameter in list_parameters(operation)
        if not parameter_help(store, operation.name, parameter.name)
    ]
    assert missing == [], "add it to src/decklog/cli/parameter_help/texts.toml"


def test_no_description_only_repeats_the_name() -> None:
    spelled = {name: name.replace("_", " ") for name in shared_help()}
    repeated = [name for name, text in shared_help().items() if text in (spelled[name], spelled[name].removesuffix(" id"))]
    assert repeated == []


def test_every_shared_description_is_used() -> None:
    used = {
        parameter.name
        for store in STORES
        for operation in operations_of(store_class(store))
        for parameter in list_parameters(operation)
    }
    assert set(shared_help()) - used == set()
