"""Where coding agents are set up from here."""

import os
import sys
from typing import Any

from decklog import __version__
from decklog.agents.setup.installing import Installer, SavedChanges
from decklog.agents.setup.supported import Setting, SetupScope
from decklog.location.locate import locate, repository, user_log


def setting_of(scope: SetupScope, *, project: str, **more: Any) -> Setting:
    """Return where and how a program is set up from here."""
    home = os.path.expanduser("~")
    return Setting(call=own_call(), scope=scope, home=home, project=project, version=__version__, environment=os.environ, **more)


def find_project() -> str | None:
    """Return the repository that this folder is in, or the folder above that has a log."""
    return repository(os.getcwd()) or locate(None, environment={}).folder


def own_call() -> tuple[str, ...]:
    """Return the words that call this very Decklog from anywhere: editors and programs begin with a path of their own."""
    sibling_path = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "decklog")
    return (sibling_path,) if os.access(sibling_path, os.X_OK) else (os.path.abspath(sys.executable), "-P", "-m", "decklog")


def installer() -> Installer:
    """Return the installer, which keeps what it changed in the user's data folder."""
    return Installer(SavedChanges(os.path.join(os.path.dirname(user_log().target), "setup")))
