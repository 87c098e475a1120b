"""Find the definitions of source files by Universal Ctags, for languages whose grammar is not installed."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from decklog.guard.symbols.definition import Definition, Kind

PATIENCE_SECONDS = 60
KINDS = {
    "function": Kind.FUNCTION,
    "func": Kind.FUNCTION,
    "method": Kind.METHOD,
    "singletonMethod": Kind.METHOD,
    "generator": Kind.FUNCTION,
    **dict.fromkeys(
        ("class", "struct", "interface", "enum", "trait", "union", "module", "type", "implementation"),
        Kind.CLASS,
    ),
}


@lru_cache(maxsize=1)
def is_installed() -> bool:
    """Say whether a Universal Ctags that writes JSON is on the path."""
    program = shutil.which("ctags")
    if program is None:
        return False
    done = subprocess.run([program, "--list-features"], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    return any(line.startswith("json") for line in done.stdout.splitlines())


def definitions(sources: Mapping[str, bytes]) -> dict[str, list[Definition]]:
    """Give the classes, functions and methods of several sources, by their paths.

    Ctags sees copies in a directory of their own: it must not open what a link in the repository points to.
    """
    found: dict[str, list[Definition]] = {path: [] for path in sources}
    with tempfile.TemporaryDirectory(prefix="decklog-ctags-") as directory:
        copies = {f"{index}{PurePosixPath(path).suffix}": path for index, path in enumerate(sources)}
        for copy, path in copies.items():
            Path(directory, copy).write_bytes(sources[path])
        for line in _run(directory, list(copies)).splitlines():
            tag = json.loads(line)
            definition = _definition(tag)
            if definition is not None:
                found[copies[tag["path"]]].append(definition)
    return found


def _run(directory: str, files: list[str]) -> str:
    command = [
        "ctags",
        "--options=NONE",
        "--output-format=json",
        "--fields=+nKsZ",
        "--sort=no",
        "-f",
        "-",
        *files,
    ]
    done = subprocess.run(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    return done.stdout.decode("utf-8", "replace")


def _definition(tag: dict[str, Any]) -> Definition | None:
    kind = KINDS.get(tag.get("kind", ""))
    if tag.get("_type") != "tag" or kind is None:
        return None
    scope = str(tag.get("scope", "")).replace("::", ".")
    if kind is Kind.FUNCTION and KINDS.get(tag.get("scopeKind", "")) is Kind.CLASS:
        kind = Kind.METHOD
    return Definition(tag["line"], kind, f"{scope}.{tag['name']}" if scope else tag["name"], (tag["name"],))
