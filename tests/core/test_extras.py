"""Hints for optional extras name a source that exists."""

import re
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from decklog.core.extras import install_hint


def test_install_hint_names_the_folder_of_an_editable_install() -> None:
    assert install_hint("web") == f"Run: pip install '{Path(__file__).parents[2]}[web]'"


@pytest.mark.parametrize(
    ("record", "requirement"),
    [
        (None, "decklog[web]"),
        ('{"url": "file:///a%20b/decklog", "dir_info": {}}', "/a b/decklog[web]"),
        ('{"url": "https://example.org/d.git", "vcs_info": {"vcs": "git"}}', "decklog[web] @ git+https://example.org/d.git"),
    ],
)
def test_install_hint_names_its_origin(monkeypatch: pytest.MonkeyPatch, record: str | None, requirement: str) -> None:
    monkeypatch.setattr(type(distribution("decklog")), "read_text", lambda *_: record)
    assert install_hint("web") == f"Run: pip install '{requirement}'"


def test_no_page_or_hint_installs_decklog_from_a_package_index() -> None:
    root = Path(__file__).parents[2]
    pages = [root / "README.md", *(root / "docs").rglob("*.md"), *(root / "src").rglob("*.py")]
    lines = [line for page in pages for line in page.read_text(encoding="utf-8").splitlines()]
    found = [line for line in lines if re.search(r"pip install (--\w+ )?['\"]?decklog\b", line)]
    assert [line for line in found if "not on a package index yet" not in line] == []


@pytest.mark.parametrize(
    ("receipt", "command"),
    [("pipx_metadata.json", "pipx install --force"), ("uv-receipt.toml", "uv tool install --force"), ("other", "pip install")],
)
def test_install_hint_uses_the_tool_that_made_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, receipt: str, command: str
) -> None:
    (tmp_path / receipt).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert install_hint("web").startswith(f"Run: {command} '")
