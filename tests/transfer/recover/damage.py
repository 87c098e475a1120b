"""Damage of the kinds that disks and crashes do, and what is left of a log afterwards."""

import os
import random
import shutil
from pathlib import Path

from decklog import Decklog
from decklog.stores.journal.replication import Replication

PAGE = 4096
KINDS = ("pages", "zeros", "truncated", "torn wal", "first page")


def damaged_copy(source: Path, folder: Path, seed: int) -> tuple[Path, str]:
    """Copy a log's files and damage the copy, the same way for the same seed; say how."""
    chance = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    path = folder / f"damaged-{seed}.db"
    for suffix in ("", "-wal"):
        if os.path.exists(f"{source}{suffix}"):
            shutil.copyfile(f"{source}{suffix}", f"{path}{suffix}")
    pages = path.stat().st_size // PAGE
    if kind == "truncated":
        os.truncate(path, chance.randint(pages // 10, pages - 1) * PAGE + chance.choice([0, 17]))
    elif kind == "torn wal":
        _tear(Path(f"{path}-wal"), chance)
    else:
        chosen = [chance.randrange(1, pages) for _ in range(chance.randint(1, 20))]
        _overwrite(path, [0, *chosen[:2]] if kind == "first page" else chosen, chance if kind != "zeros" else None)
    return path, kind


def _overwrite(path: Path, pages: list[int], chance: random.Random | None) -> None:
    with open(path, "r+b") as file:
        for page in pages:
            file.seek(page * PAGE)
            file.write(chance.randbytes(PAGE) if chance else b"\0" * PAGE)


def _tear(path: Path, chance: random.Random) -> None:
    """Spoil a stretch in the middle of the WAL and cut its end off."""
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(chance.randrange(size // 4, size // 2))
        file.write(chance.randbytes(3000))
    os.truncate(path, chance.randrange(size * 3 // 4, size))


def hashes_in(log: Decklog) -> set[str]:
    """List the old hashes of all entries that a recovered log has, under whatever number."""
    found = set()
    for head in log.journal.heads():
        for start in range(0, head["seq"], 1000):
            for entry in Replication.of(log).given_out(head["stream"], after=start, limit=1000):
                if entry["subtype"] == "recovered":
                    found.update(_told(log, head["stream"], entry["seq"]))
                else:
                    found.add(entry["hash"])
    return found


def _told(log: Decklog, stream: str, seq: int) -> set[str]:
    payload = log.journal.get(stream, seq).payload
    return set(payload.get("hashes", [])) if isinstance(payload, dict) else set()
