"""Install packages with plug-ins for a test, as pip leaves them behind."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from decklog.core.plugins import scan_entry_points

CODE = """
from types import SimpleNamespace
SENT = []
def model(choice): return SimpleNamespace(model=choice.model)
def notify(message, words):
    if words == ["down"]: raise ConnectionError("not reached")
    SENT.append((message["what"], list(words)))
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install the package other-plugins with some entry points and the code of its module."""

    def installed(entries: dict[str, str], code: str = CODE) -> None:
        folder = tmp_path / "site"
        info = folder / "other_plugins-2.0.dist-info"
        info.mkdir(parents=True)
        (folder / "other_plugins.py").write_text(code)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-plugins\nVersion: 2.0\n")
        lines = "\n".join(f"{name} = {value}" for name, value in entries.items())
        (info / "entry_points.txt").write_text(f"[decklog.plugins]\n{lines}\n")
        monkeypatch.syspath_prepend(str(folder))
        scan_entry_points.cache_clear()

    scan_entry_points.cache_clear()
    yield installed
    scan_entry_points.cache_clear()
    sys.modules.pop("other_plugins", None)
