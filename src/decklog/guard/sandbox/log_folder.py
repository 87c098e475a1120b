"""Protection of the log from sandboxed commands: find the folders that a sandbox must hide."""

import os
from collections.abc import Sequence

from decklog.core.errors import Denied

NAME = ".decklog"
HINT = (
    "Store the log outside and only its address here: decklog init --outside. A sandbox of kind none lets commands write to it."
)


def find_log_folders(root: str, log: str | None) -> list[str]:
    """Return the real paths of the folders with the log's file or its address file."""
    found = [os.path.join(root, NAME)] if os.path.isdir(os.path.join(root, NAME)) else []
    found += [os.path.dirname(os.path.realpath(log))] if log is not None else []
    return list(dict.fromkeys(map(os.path.realpath, found)))


def find_folders_to_cover(root: str, log: str | None, writable: Sequence[str]) -> tuple[str, ...]:
    """Return the writable folders that must be hidden; raise Denied for a log that can't be hidden reliably."""
    trees = [os.path.realpath(path) for path in writable]
    if log is not None and (link := _find_writable_link(log, trees)) is not None:
        raise _build_refusal(log, f"through the link {link}, whose target could be changed")
    exposed = [folder for folder in find_log_folders(root, log) if any(_is_within(folder, tree) for tree in trees)]
    for folder in exposed:
        # A command could move a parent folder aside; the next command would then see the log.
        if any(_is_within(folder, tree) and tree != os.path.dirname(folder) for tree in trees):
            raise _build_refusal(log or folder, f"in {folder}, and only a separate folder directly in {root} can be hidden")
    return tuple(exposed)


def check_without_cover(root: str, log: str | None, writable: Sequence[str]) -> None:
    """Raise Denied for a log whose file is writable. An address file may stay: its user must accept a changed address."""
    trees = [os.path.realpath(path) for path in writable]
    if log is None:
        return
    if _find_writable_link(log, trees) or any(_is_within(os.path.realpath(log), tree) for tree in trees):
        raise _build_refusal(log, f"in {root}. Landlock can't exclude it, and mount namespaces are not available here")


def _find_writable_link(path: str, trees: Sequence[str]) -> str | None:
    """Return the first symbolic link in a path whose folder a command may write to; None without one."""
    folder = os.path.dirname(os.path.abspath(path))
    while folder != os.path.dirname(folder):
        if os.path.islink(folder) and any(_is_within(os.path.realpath(os.path.dirname(folder)), tree) for tree in trees):
            return folder
        folder = os.path.dirname(folder)
    return None


def _is_within(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree.rstrip("/") + "/")


def _build_refusal(log: str, why: str) -> Denied:
    return Denied(f"The command could write to the log {log} {why}", hint=HINT, log=log)
