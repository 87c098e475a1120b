"""Hints for optional extras name a source that exists."""

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
