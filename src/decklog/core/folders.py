"""Folders of this user, by the XDG base directory specification."""

import os


def config_home() -> str:
    """Return the folder of this user's settings."""
    return _home("XDG_CONFIG_HOME", ".config")


def data_home() -> str:
    """Return the folder of this user's data."""
    return _home("XDG_DATA_HOME", ".local", "share")


def state_home() -> str:
    """Return the folder of what must survive a restart."""
    return _home("XDG_STATE_HOME", ".local", "state")


def _home(variable: str, *default: str) -> str:
    return os.path.join(os.environ.get(variable) or os.path.join(os.path.expanduser("~"), *default), "decklog")
