"""Look-alikes of the third batch: texts that hold no secret."""

import json
from collections.abc import Iterator
from pathlib import Path

_FILE = Path(__file__).parent / "harmless.jsonl"


def texts() -> Iterator[str]:
    """Give every text."""
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
