"""MkDocs hooks: show the version, and write the search index as a script, which a browser loads without a server."""

import re
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1] / "src/decklog/__init__.py"


def on_config(config: Any) -> Any:
    """Add the version of the package to the configuration."""
    found = re.search(r'^__version__ = "(.+)"$', PACKAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    config["extra"]["version"] = found[1]
    return config


def on_post_build(config: Any) -> None:
    """Write `search_index.js` next to the search index of MkDocs."""
    index = Path(config["site_dir"]) / "search/search_index.json"
    index.with_suffix(".js").write_text(f"const searchIndex = {index.read_text(encoding='utf-8')};\n", encoding="utf-8")
