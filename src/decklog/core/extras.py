"""Say how to install an optional extra."""

import json
from urllib.parse import unquote


def install_hint(extra: str) -> str:
    """Return the command that adds an extra to this installation, from where it was installed."""
    # Slow to import, and needed only for an error message.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        record = distribution("decklog").read_text("direct_url.json")
    except PackageNotFoundError:
        record = None
    return f"Run: pip install '{_requirement(extra, record)}'"


def _requirement(extra: str, record: str | None) -> str:
    """Return what pip installs, given the recorded origin: a folder, a repository, or None for a package index."""
    if record is None:
        return f"decklog[{extra}]"
    origin = json.loads(record)
    if vcs := origin.get("vcs_info"):
        return f"decklog[{extra}] @ {vcs['vcs']}+{origin['url']}"
    return f"{unquote(origin['url']).removeprefix('file://')}[{extra}]"
