"""Scopes of lessons: versions, paths, and the commit at which a lesson was valid.

{"versions": {"python": ">=3.11,<3.13"}, "paths": ["src/parser"], "commit": "4f2a91c"}
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from decklog.core.errors import Invalid

_PARTS = ("versions", "paths", "commit")
_BOUND = re.compile(r"(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)")
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {">=": ge, "<=": le, ">": gt, "<": lt, "==": eq, "!=": ne}
_VERSION = re.compile(r"([^\s=]+)=(\d+(?:\.\d+)*)")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


def check(scope: Mapping[str, Any]) -> None:
    """Raise Invalid for an invalid scope."""
    if unknown := sorted(scope.keys() - set(_PARTS)):
        raise Invalid(f"a scope has no {', '.join(unknown)}; it has versions, paths and commit", field="scope", unknown=unknown)
    versions, paths, commit = scope.get("versions", {}), scope.get("paths", []), scope.get("commit")
    if not isinstance(versions, dict) or not all(isinstance(bounds, str) and _bounds(bounds) for bounds in versions.values()):
        raise Invalid('versions of a scope look like {"python": ">=3.11,<3.13"}', field="scope")
    if not isinstance(paths, list) or not all(isinstance(path, str) and path.strip("/") for path in paths):
        raise Invalid('paths of a scope look like ["src/parser", "README.md"]', field="scope")
    if any("*" in path for path in paths):
        raise Invalid("paths of a scope have no wildcards: a folder covers everything in it", field="scope")
    if commit is not None and not (isinstance(commit, str) and _COMMIT.fullmatch(commit)):
        raise Invalid("the commit of a scope is seven or more hexadecimal digits", field="scope")


def versions_of(given: Iterable[str]) -> dict[str, str]:
    """Parse versions given as NAME=VERSION."""
    found = {}
    for text in given:
        parts = _VERSION.fullmatch(text)
        if parts is None:
            raise Invalid(f"{text!r} is no version; write NAME=VERSION, such as python=3.12", field="versions")
        found[parts[1]] = parts[2]
    return found


def matches_scope(scope: Mapping[str, Any], versions: Mapping[str, str], paths: Sequence[str]) -> bool:
    """Return whether a scope fits these versions and paths. Missing parts always fit."""
    wanted = scope.get("versions", {})
    if any(name in versions and not _within(versions[name], bounds) for name, bounds in wanted.items()):
        return False
    places = scope.get("paths", [])
    return not places or not paths or any(_meet(place, path) for place in places for path in paths)


def explain_change(scope: Mapping[str, Any], versions: Mapping[str, str], paths: Sequence[str], commit: str | None) -> str | None:
    """Return what changed in a scope; None if nothing did."""
    for name, bounds in scope.get("versions", {}).items():
        if name in versions and not _within(versions[name], bounds):
            return f"{name} {versions[name]} is not {bounds}"
    for place in scope.get("paths", []):
        for path in paths:
            if _meet(place, path):
                return f"{path} changed"
    seen = scope.get("commit")
    if commit and seen and (seen.startswith(commit) or commit.startswith(seen)):
        return f"commit {seen} was undone"
    return None


def _meet(place: str, path: str) -> bool:
    """Return whether the paths are equal, or one contains the other."""
    one, other = (f"{part.strip('/').removeprefix('./')}/" for part in (place, path))
    return one.startswith(other) or other.startswith(one)


def _bounds(text: str) -> list[tuple[str, tuple[int, ...]]] | None:
    parts = [_BOUND.fullmatch(part.strip()) for part in text.split(",")]
    return None if not all(parts) else [(part[1], _numbers(part[2])) for part in parts if part]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _within(version: str, bounds: str) -> bool:
    return all(_meets(_numbers(version), comparison, bound) for comparison, bound in _bounds(bounds) or [])


def _meets(version: tuple[int, ...], comparison: str, bound: tuple[int, ...]) -> bool:
    length = max(len(version), len(bound))
    ours, theirs = (numbers + (0,) * (length - len(numbers)) for numbers in (version, bound))
    if comparison in ("==", "!="):
        # 3.11.4 is 3.11.
        return _COMPARISONS[comparison](version[: len(bound)], bound)
    return _COMPARISONS[comparison](ours, theirs)
