"""Plays three newcomers in a fresh home, with the commands of the README: how far is it to the first useful screen?

Run it as `python -m tests.newcomers.play`.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.project.documents import CONSOLE, LEAVES_THE_MACHINE, ROOT, blocks_of, steps_of, variables

HERE = Path(__file__).parent
README = ROOT / "README.md"


@dataclass
class Played:
    """What a newcomer did until the first useful screen."""

    name: str
    commands: list[str] = field(default_factory=list)
    python_lines: int = 0
    seconds: float = 0.0
    bytes_read: int = 0
    screen: str = ""


@dataclass
class Newcomer:
    """A person in a new home, in a repository."""

    folder: Path
    played: Played

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def repository(self) -> Path:
        return self.folder / "project"

    def settle(self) -> "Newcomer":
        """Create the home and the repository, and the sessions that the agents' programs left behind."""
        (self.repository / ".git").mkdir(parents=True)
        for name, target in (("claude", ".claude/projects/-project/one.jsonl"), ("codex", ".codex/sessions/rollout-one.jsonl")):
            path = self.home / target
            path.parent.mkdir(parents=True)
            text = (HERE / f"{name}.jsonl").read_text(encoding="utf-8")
            path.write_text(text.replace("{repository}", str(self.repository)), encoding="utf-8")
        return self

    def type(self, command: str) -> str:
        """Run a command as it is typed; return what it prints. Exit code 7 means that a decision is pending."""
        self.played.commands.append(command)
        if command.startswith(LEAVES_THE_MACHINE):
            return ""
        begun = time.monotonic()
        environment = {**variables(self.home), "XDG_DATA_HOME": str(self.home / ".local/share")}
        words = shlex.split(command, comments=True)
        done = subprocess.run(
            words, cwd=self.repository, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode in (0, 7), f"{command}\n{done.stdout}{done.stderr}"
        self.played.seconds += time.monotonic() - begun
        self.played.bytes_read += len((done.stdout + done.stderr).encode())
        self.played.screen = done.stdout
        return done.stdout


def _readme_commands() -> Iterator[str]:
    for block in blocks_of(README):
        if block.language == CONSOLE:
            yield from (step.command for step in steps_of(block))


def play_daily_user(folder: Path) -> Played:
    """Type the commands of the README in order, until a screen shows what the sessions cost by model."""
    newcomer = Newcomer(folder, Played("daily user")).settle()
    for command in _readme_commands():
        screen = newcomer.type(command)
        if "$" in screen and "claude-sonnet-5-5" in screen:
            return newcomer.played
    raise AssertionError(f"no useful screen after {newcomer.played.commands}")


def play_builder(folder: Path) -> Played:
    """Install, save the Python of the README as a file, run it, and look at the run."""
    newcomer = Newcomer(folder, Played("builder")).settle()
    newcomer.type(next(_readme_commands()))
    program = next(block.text for block in blocks_of(README) if block.language == "python")
    newcomer.played.python_lines = sum(bool(line.strip()) for line in program.splitlines())
    (newcomer.repository / "agent.py").write_text(program, encoding="utf-8")
    newcomer.type(f"{shlex.quote(sys.executable)} agent.py")
    screen = newcomer.type("decklog --db agents.db runs show commas")
    assert "Change the lexer" in screen
    return newcomer.played


def play_owner(folder: Path) -> Played:
    """Find a question that an agent asked, answer it, and limit what may be spent."""
    newcomer = Newcomer(folder, Played("owner")).settle()
    agent = Newcomer(folder, Played("agent"))
    for command in ("decklog init", "decklog import claude", 'decklog runs start "Release 1.2" --run release'):
        agent.type(command)
    about = shlex.quote('"v1.2"')
    agent.type(f"decklog approvals ask release 'May I push the tag?' --by dev-1 --about {about} --approval push")
    newcomer.type("pip install '.[web]'")
    screen = newcomer.type("decklog")
    assert "May I push the tag?" in screen
    newcomer.type("decklog approvals decide push granted --by ana --rationale 'Tests are green'")
    newcomer.type("decklog budgets set all --period day --limit 25.00")
    return newcomer.played


NEWCOMERS: dict[str, Callable[[Path], Played]] = {
    "daily user": play_daily_user,
    "builder": play_builder,
    "owner": play_owner,
}


def main() -> None:
    os.environ.pop("DECKLOG_DB", None)
    print("| newcomer | commands | lines of Python | seconds | bytes read |\n| --- | ---: | ---: | ---: | ---: |")
    for name, play in NEWCOMERS.items():
        with tempfile.TemporaryDirectory() as folder:
            played = play(Path(folder))
        figures = (len(played.commands), played.python_lines, f"{played.seconds:.1f}", f"{played.bytes_read:,}")
        print(f"| {name} | {' | '.join(map(str, figures))} |")


if __name__ == "__main__":
    main()
