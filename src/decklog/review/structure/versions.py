"""Versions of the project itself: what its manifests, its changelog and the message of a change say of them."""

import re
from collections.abc import Iterator

from decklog.review.rules.source import Source
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import Tree

_FORMS = {
    "pyproject.toml": r"(?ms)^\[(?:project|tool\.poetry)\]\s*$(?:(?!^\[).)*?^version\s*=\s*[\"'](?P<v>[^\"']+)",
    "Cargo.toml": r"(?ms)^\[(?:workspace\.)?package\]\s*$(?:(?!^\[).)*?^version\s*=\s*\"(?P<v>[^\"]+)",
    "package.json": r"(?m)^(?:\{)?\s{0,4}\"version\"\s*:\s*\"(?P<v>[^\"]+)",
    "package-lock.json": r"(?m)^\s{0,4}\"version\"\s*:\s*\"(?P<v>[^\"]+)",
    "setup.py": r"\bversion\s*=\s*[\"'](?P<v>[^\"']+)",
    "setup.cfg": r"(?m)^version\s*=\s*(?P<v>\d\S*)",
    "pom.xml": r"(?s)^(?:(?!<(?:parent|dependencies|build)>).)*?<version>(?P<v>[^<]+)",
    "build.gradle": r"(?m)^version\s*=?\s*[\"'](?P<v>[^\"']+)",
    "build.gradle.kts": r"(?m)^version\s*=\s*\"(?P<v>[^\"]+)",
    "Chart.yaml": r"(?m)^version:\s*[\"']?(?P<v>\d[\w.+-]*)",
    "VERSION": r"\A\s*v?(?P<v>\d[\w.+-]*)\s*\Z",
    "mix.exs": r"\bversion:\s*\"(?P<v>[^\"]+)",
    "pubspec.yaml": r"(?m)^version:\s*(?P<v>\d[\w.+-]*)",
    "__init__.py": r"(?m)^__version__\s*(?::[^=]+)?=\s*[\"'](?P<v>[^\"']+)",
    "version.py": r"(?m)^_?_?version_?_?\s*=\s*[\"'](?P<v>[^\"']+)",
    "_version.py": r"(?m)^_?_?version_?_?\s*=\s*[\"'](?P<v>[^\"']+)",
    "version.go": r"(?i)\bversion\s*=\s*\"v?(?P<v>\d[^\"]*)",
}
_CHANGELOG = re.compile(r"(?i)(?:^|/)(?:changelog|changes|history|news)(?:\.\w+)?$")
_HEADING = re.compile(
    r"(?m)^(?:#{1,3}\s*|=+\s*|v)?\[?v?(?P<v>\d+\.\d+(?:\.\d+)?(?:[-.]?(?:a|b|rc|alpha|beta|dev)[\w.]*)?)\]?(?=\s|$|\)|:|\()"
)
_RELEASE = re.compile(
    r"(?i)^(?:chore(?:\([^)]*\))?: ?|build: ?)?(?:release|version|bump (?:the )?(?:version"
    r"|release|chart|package)?(?:\s*(?:number|version))?(?:\s+to)?|prepare (?:the )?(?:release )?(?:of )?"
    r"|cut)\s*:?\s*v?(?P<v>\d+\.\d+(?:\.\d+)?(?:[-.]?(?:a|b|rc|alpha|beta|dev)[\w.]*)?)\b"
)


def version_of(name: str, text: str) -> str:
    """Give the version that a manifest says, by the manifest's name; nothing where it says none."""
    form = _FORMS.get(name)
    found = re.search(form, text) if form is not None and text else None
    return found["v"].strip() if found is not None else ""


def versions(tree: Tree) -> Iterator[Trouble]:
    """Find versions that do not agree after a change that touches one of them."""
    moved = [
        (one, old, new)
        for one in tree.sources
        if (old := version_of(one.name, one.before)) != (new := version_of(one.name, one.text)) and old and new
    ]
    said = _RELEASE.search(tree.change.message.partition("\n")[0])
    for source, old, new in moved:
        line = next((number for number in sorted(source.added) if new in source.rows[number - 1]), None)
        if _key(new) < _key(old):
            yield _trouble(f"the version goes back from {old} to {new}", source.path, line)
        if said is not None and said["v"] != new and _is_other(said["v"], new):
            yield _trouble(f"the message says {said['v']}, and this says {new}", source.path, line)
        yield from _left(tree, source, old, new)
    yield from _changelog(tree, moved, said)


def _left(tree: Tree, source: Source, old: str, new: str) -> Iterator[Trouble]:
    """Find manifests beside one that moved which said the same before and still do."""
    folder = source.path.rpartition("/")[0]
    beside = [path for path in tree.files if path.rpartition("/")[2] in _FORMS and not tree.is_test(path)]
    near = [
        path
        for path in beside
        if path.count("/") <= source.path.count("/") + 2 and path != source.path and path.startswith(folder)
    ]
    for path, text in tree.texts(near[:40]).items():
        if version_of(path.rpartition("/")[2], text) == old and old != new:
            yield _trouble(f"it still says {old}, and {source.path} says {new}", path, _line(text, old))


def _changelog(tree: Tree, moved: list[tuple[Source, str, str]], said: re.Match[str] | None) -> Iterator[Trouble]:
    path = next((one for one in sorted(tree.files, key=len) if _CHANGELOG.search(one)), None)
    text = tree.text(path) if path is not None else ""
    headings = [one["v"] for one in _HEADING.finditer(text)]
    if path is not None and headings:
        for source, old, new in moved:
            if old in headings and new not in headings and _is_release(new):
                yield _trouble(f"{source.path} says {new}, of which the changelog says nothing", path, None)
                return
    changed = tree.changed.get(path or "")
    before = [one["v"] for one in _HEADING.finditer(changed.before)] if changed is not None else []
    fresh = [one for one in headings if one not in before] if changed is not None else []
    now = {
        version_of(name.rpartition("/")[2], body)
        for name, body in tree.texts([one for one in tree.files if one in _FORMS]).items()
    } - {""}
    wanted = fresh[:1] or ([said["v"]] if said is not None and not moved and changed is not None else [])
    if wanted and now and before and now & set(before) and not any(not _is_other(wanted[0], one) for one in now):
        yield _trouble(
            f"the changelog speaks of {wanted[0]}, and the project says {', '.join(sorted(now))}", path, _line(text, wanted[0])
        )


def _is_release(version: str) -> bool:
    return re.search(r"(?i)dev|snapshot|alpha|beta|rc|[ab]\d", version) is None


def _is_other(first: str, second: str) -> bool:
    return first != second and not second.startswith(f"{first}.") and not first.startswith(f"{second}.")


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0])[:3])


def _line(text: str, word: str) -> int | None:
    return next((number for number, row in enumerate(text.split("\n"), 1) if word in row), None)


def _trouble(text: str, path: str | None, line: int | None) -> Trouble:
    return Trouble("version", text, path, line, "Say the same version everywhere.")
