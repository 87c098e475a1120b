"""Folders of this user."""

import os
from pathlib import Path


def state_home() -> Path:
    """Return the directory where this user's programs keep what must survive a restart."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(home, "decklog")
