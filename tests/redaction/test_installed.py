"""Files that are installed on every machine hold no secrets, though they speak of them: they come back as they are."""

import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from decklog.redaction import explain
from tests.searches import FULL

_KINDS = (".py", ".pyi", ".txt", ".md", ".rst", ".json", ".toml", ".js", ".css", ".html", ".h", ".sh")
_FILES = 300 if FULL else 60
_LARGEST = 200_000
# Files that may have a value taken for a secret, in a megabyte. A list of words has many such values or none.
_MOST_PER_MEGABYTE = 3


def _files() -> Iterator[Path]:
    paths = sysconfig.get_paths()
    # A set: in some installations the packages are below the standard library.
    found = {path for name in ("stdlib", "purelib") for path in Path(paths[name]).rglob("*") if path.suffix in _KINDS}
    order = sorted(found)
    random.Random(5).shuffle(order)
    # Examples of services come with made-up credentials.
    own = ("decklog", "examples")
    files = (path for path in order if path.is_file() and path.stat().st_size < _LARGEST and not set(own) & set(path.parts))
    for _, path in zip(range(_FILES), files, strict=False):
        yield path


@pytest.mark.slow
def test_installed_files_are_left_alone() -> None:
    changed, size = [], 0
    for path in _files():
        text = path.read_text(encoding="utf-8", errors="replace")
        size += len(text)
        values = {(one.kind, one.reason, text[one.start : one.end]) for one in explain(text)}
        changed += [(path.name, *value) for value in sorted(values)]
    assert len({name for name, *_ in changed}) <= _MOST_PER_MEGABYTE * max(1.0, size / 1_000_000), changed
