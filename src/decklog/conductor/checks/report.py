"""What a test runner reports: each test by its name, and how it ended."""

from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

LARGEST = 64 * 1024 * 1024
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


def read_junit(path: Path) -> dict[str, str] | None:
    """Read a report in JUnit's form; None when there is none that can be read, or one without a test."""
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            return None
        root = ElementTree.fromstring(path.read_bytes())
    except (OSError, ElementTree.ParseError, ValueError):
        return None
    tests: dict[str, str] = {}
    for case in root.iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        # The same name twice is as bad as its worse half.
        tests[name] = _worse(tests.get(name, PASSED), _outcome(case))
    return tests or None


def _outcome(case: ElementTree.Element) -> str:
    kinds = {child.tag for child in case}
    if kinds & {"failure", "error"}:
        return FAILED
    return SKIPPED if "skipped" in kinds else PASSED


def _worse(one: str, other: str) -> str:
    order = (PASSED, SKIPPED, FAILED)
    return max(one, other, key=order.index)


def census(base: Mapping[str, str], tip: Mapping[str, str]) -> list[str]:
    """Name the tests that passed on the base and are not run on the tip: gone, or skipped."""
    passed = [name for name, outcome in base.items() if outcome == PASSED]
    return sorted(name for name in passed if tip.get(name, SKIPPED) == SKIPPED)
