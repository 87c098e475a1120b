"""Settings for setting up coding agents from the current folder."""

import os
import sys
from typing import Any

from decklog import __version__
from decklog.agents.setup.installing import Installer, SavedChanges
from decklog.agents.setup.supported import Setting, SetupScope
from decklog.location.locate import locate, repository, user_log


def build_setting(scope: SetupScope, *, project: str, **more: Any) -> Setting:
    """Build the setting of a program for a scope and a project."""
    home = os.path.expanduser("~")
    return Setting(
        call=decklog_command(), scope=scope, home=home, project=project, version=__version__, environment=os.environ, **more
    )


def find_project() -> str | None:
    """Return the repository of this folder, or the closest parent folder with a log."""
    return repository(os.getcwd()) or locate(None, environment={}).folder


def decklog_command() -> tuple[str, ...]:
    """Return the absolute command of this installation: editors and agents may have another PATH."""
    script = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "decklog")
    return (script,) if os.access(script, os.X_OK) else (os.path.abspath(sys.executable), "-P", "-m", "decklog")


def installer() -> Installer:
    """Return the installer, which records its changes in the user's data folder."""
    return Installer(SavedChanges(os.path.join(os.path.dirname(user_log().target), "setup")))
