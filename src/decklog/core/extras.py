"""Return how to install an optional extra."""

import json
import os
import sys
from urllib.parse import unquote

# Files that tools leave in the environments they make, and the command that installs there again.
_INSTALLERS = {"pipx_metadata.json": "pipx install --force", "uv-receipt.toml": "uv tool install --force"}


def install_hint(extra: str) -> str:
    """Return the command that adds an extra to this installation, from where it was installed."""
    # Slow to import, and needed only for an error message.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        record = distribution("decklog").read_text("direct_url.json")
    except PackageNotFoundError:
        record = None
    return f"Run: {_installer(sys.prefix)} '{_requirement(extra, record)}'"


def _installer(environment: str) -> str:
    """Return the command that installs into an environment: that of the tool which made it, or pip."""
    found = (command for name, command in _INSTALLERS.items() if os.path.exists(os.path.join(environment, name)))
    return next(found, "pip install")


def _requirement(extra: str, record: str | None) -> str:
    """Return what pip installs, given the recorded origin: a folder, a repository, or None for a package index."""
    if record is None:
        return f"decklog[{extra}]"
    origin = json.loads(record)
    if vcs := origin.get("vcs_info"):
        return f"decklog[{extra}] @ {vcs['vcs']}+{origin['url']}"
    return f"{unquote(origin['url']).removeprefix('file://')}[{extra}]"
