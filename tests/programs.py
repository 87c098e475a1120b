"""Run `decklog` in a forked process that has everything imported.

Calls whose environment affects Python itself, and those on a terminal, run in a new process.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests import fork_server
from tests.fork_server import ProcessResult, environment

# Variables that Python or the C library reads at startup.
_OF_PYTHON = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "COVERAGE")


def call(words: list[str], *, cwd: Path, variables: dict[str, str], stdin: bytes = b"", timeout: float = 60) -> ProcessResult:
    """Run `decklog` with these words; return its result."""
    if any(name.startswith(_OF_PYTHON) for name in variables):
        command = [sys.executable, "-m", "decklog", *words]
        done = subprocess.run(
            command, input=stdin, capture_output=True, cwd=cwd, env=environment(**variables), timeout=timeout, check=False
        )
        return ProcessResult(done.returncode, done.stdout, done.stderr)
    return fork_server.run(__name__, words, cwd=cwd, variables=variables, stdin=stdin, timeout=timeout)


def write_decklog_stub(folder: Path) -> int:
    """Write a stub of `decklog` to a folder; return the file descriptor that the shell must inherit."""
    return fork_server.write_stub_program(__name__, folder / "decklog")


def prepare() -> Callable[..., None]:
    """Import everything, and return the function that runs the program."""
    from decklog.cli import main  # before a module of this name takes its place in the package

    _import_everything()

    def run_program(*words: str) -> None:
        sys.argv = ["decklog", *words]
        main(list(words))

    return run_program


def _import_everything() -> None:
    import decklog.cli.main
    import tests.preloaded  # noqa: F401

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
