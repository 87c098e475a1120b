"""What the commands of one toolbox have in common."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from decklog.core.errors import Invalid
from decklog.guard.sandbox.sandbox import Sandbox

MOST_CAP = 4 * 1024 * 1024


@dataclass(kw_only=True)
class Commands:
    """Where commands run, what holds them in, what they see of the environment, how much of their output stays."""

    state: Path
    sandbox: Sandbox
    cap_bytes: int
    passed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.cap_bytes <= MOST_CAP:
            raise Invalid(f"cap_bytes is {self.cap_bytes}; it is 1 to {MOST_CAP}", field="cap_bytes")
        self.scratch = Path(tempfile.mkdtemp(prefix="decklog-"))

    def close(self) -> None:
        """Remove the scratch directory that the commands shared."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def folder(self, mark: str) -> Path:
        """Make the folder that a command's supervisor writes to."""
        path = self.state / mark
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path
