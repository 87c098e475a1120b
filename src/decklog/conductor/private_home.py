"""A home of its own for a sandboxed agent: private copies of its program's settings, links to what it shares.

Settings may name programs, such as hooks, that run outside of the sandbox the next time. So the agent never writes to the
person's: it has copies that go with its folder, reads some files through links, and writes only the shared state that is listed,
such as the credentials, which its program renews.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class PrivateHomeFiles:
    """Files of the person's home that an agent's program uses, each written as `~/…`.

    `variables` are those that move a folder elsewhere, each with the folder that it moves.
    """

    copied: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PrivateHome:
    """What a prepared home needs of the sandbox: real paths behind its links, and variables that lead into it."""

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def prepare(files: PrivateHomeFiles, home: Path, environment: Mapping[str, str]) -> PrivateHome:
    """Fill a new home with copies and links of what the person's home has."""
    moved = {folder: environment[name] for name, folder in files.variables.items() if environment.get(name)}
    for path in files.copied:
        source, target = _source(path, moved), _target(path, home)
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.copyfile(source, target)
            target.chmod(0o600)
    linked = {kind: [found for path in paths if (found := _link(path, moved, home))] for kind, paths in _linked(files).items()}
    env = {name: str(_target(folder, home)) for name, folder in files.variables.items() if folder in moved}
    return PrivateHome(readable=tuple(linked["readable"]), writable=tuple(linked["writable"]), env=env)


def _linked(files: PrivateHomeFiles) -> dict[str, tuple[str, ...]]:
    return {"readable": files.readable, "writable": files.writable}


def _link(path: str, moved: Mapping[str, str], home: Path) -> str | None:
    """Link a file or folder into the new home; return its real path, or None if there is none."""
    source, target = _source(path, moved), _target(path, home)
    if not source.exists():
        return None
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    real = os.path.realpath(source)
    if not target.is_symlink():
        target.symlink_to(real)
    return real


def _source(path: str, moved: Mapping[str, str]) -> Path:
    for folder, elsewhere in moved.items():
        if path.startswith(f"{folder}/"):
            return Path(elsewhere, path.removeprefix(f"{folder}/"))
    return Path(path).expanduser()


def _target(path: str, home: Path) -> Path:
    return home / path.removeprefix("~/")
