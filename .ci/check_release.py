"""Check that a tag, the changelog and the version agree, and print the changelog's words about it.

python .ci/check_release.py v1.2.0
"""

import re
import sys
from datetime import date
from pathlib import Path

_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_SHAPE = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)


def main(root: Path, words: list[str]) -> int:
    """Print the release's notes, or what does not agree."""
    if len(words) != 1:
        print("Usage: check_release.py TAG", file=sys.stderr)
        return 2
    found = _VERSION.search((root / "src/decklog/__init__.py").read_text(encoding="utf-8"))
    sections = sections_of((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    faults = faults_of(words[0], found.group(1) if found else "", sections)
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(next(text for heading, text in sections if heading != "Unreleased"))
    return bool(faults)


def sections_of(changelog: str) -> list[tuple[str, str]]:
    """Cut a changelog into its headings and their texts, the newest first."""
    _, *parts = _SECTION.split(changelog)
    return [(heading.strip(), text.strip()) for heading, text in zip(parts[::2], parts[1::2], strict=True)]


def faults_of(tag: str, version: str, sections: list[tuple[str, str]]) -> list[str]:
    """Give each thing that does not agree, in words."""
    faults = []
    if not _SHAPE.fullmatch(version):
        faults.append(f"decklog.__version__ is {version!r}, which is no version like 1.2.0 or 1.2.0rc1")
    if tag != f"v{version}":
        faults.append(f"The tag is {tag}, but decklog.__version__ is {version}: the tag must be v{version}")
    if sections and sections[0][0] == "Unreleased":
        if sections[0][1]:
            faults.append("CHANGELOG.md still has lines under Unreleased: move them under the version's own heading")
        sections = sections[1:]
    return faults + _faults_of_heading(version, *(sections[0] if sections else ("", "")))


def _faults_of_heading(version: str, heading: str, text: str) -> list[str]:
    name, _, day = heading.partition(" - ")
    if name != version:
        return [f"The newest version in CHANGELOG.md is {name or 'missing'}: write '## {version} - YYYY-MM-DD'"]
    try:
        date.fromisoformat(day)
    except ValueError:
        return [f"CHANGELOG.md does not say on which day {version} came: write '## {version} - YYYY-MM-DD'"]
    return [] if text else [f"CHANGELOG.md has no entry for {version}"]


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent, sys.argv[1:]))
