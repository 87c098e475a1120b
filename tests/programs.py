"""The program in a process of its own, forked from one that has everything imported.

Calls whose environment changes Python itself, and those on a terminal, are started from nothing.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests import prepared
from tests.prepared import Done, environment

# What Python or the C library looks at when a process begins.
_OF_PYTHON = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "COVERAGE")


def call(words: list[str], *, cwd: Path, variables: dict[str, str], stdin: bytes = b"", timeout: float = 60) -> Done:
    """Run `decklog` with these words; return its result."""
    if any(name.startswith(_OF_PYTHON) for name in variables):
        command = [sys.executable, "-m", "decklog", *words]
        done = subprocess.run(
            command, input=stdin, capture_output=True, cwd=cwd, env=environment(**variables), timeout=timeout, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)
    return prepared.run(__name__, words, cwd=cwd, variables=variables, stdin=stdin, timeout=timeout)


def stand_in(folder: Path) -> int:
    """Put a `decklog` into a folder that is forked too; give the file that the shell which finds it must inherit."""
    return prepared.stand_in(__name__, folder / "decklog")


def prepare() -> Callable[..., None]:
    """Import everything, and give what is the program."""
    from decklog.cli import main  # before a module of this name takes its place in the package

    _import_everything()

    def be_the_program(*words: str) -> None:
        sys.argv = ["decklog", *words]
        main(list(words))

    return be_the_program


def _import_everything() -> None:
    import decklog.cli.main
    import tests.imported  # noqa: F401

    for name in decklog.cli.main.COMMANDS:
        decklog.cli.main.menu.get_command(None, name)
    import decklog.agents.intake
    import decklog.cli.exits
    import decklog.cli.hints
    import decklog.cli.shortcuts
    import decklog.cli.show
    import decklog.cli.signing
    import decklog.cli.store_verbs
    import decklog.guard.policy
    import decklog.hooks.proxy.relay
    import decklog.location.locate
    import decklog.models.providers.making
    import decklog.redaction.redactor
    import decklog.review.publishing
    import decklog.shortcuts.planning
    import decklog.shortcuts.verbs
    import decklog.transfer.doctor
