"""Where the tests of setting up take place."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cli.conftest import Said

Here = Callable[..., Said]


@dataclass(frozen=True)
class Places:
    root: Path

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def variables(self) -> dict[str, str]:
        own = {"HOME": str(self.home), "XDG_DATA_HOME": str(self.root / "data"), "XDG_CONFIG_HOME": str(self.root / "config")}
        return {**own, "PATH": f"{self.root / 'bin'}:/usr/bin:/bin", "COLUMNS": "200"}


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Give every file below a folder with its bytes and mode; folders and links as they are."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = str(path.readlink()).encode() if path.is_symlink() else b"" if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = (content, path.lstat().st_mode)
    return found
