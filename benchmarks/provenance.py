"""What captures cost in a repository of 10,000 files, and blame compared with git's own."""

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.measure import Row, row, write
from decklog import Decklog
from decklog.provenance.blame import blame_file
from decklog.provenance.capture import Capture
from decklog.provenance.git import GitRepository
from decklog.provenance.recording import record_captured
from decklog.provenance.tool_calls import FileCall

FILES, COMMITS, ROUNDS = 10_000, 5_000, 15
_WHO = ("-c", "user.name=A", "-c", "user.email=a@example.invalid")


def git(folder: Path, *words: str, given: bytes | None = None) -> bytes:
    return subprocess.run(["git", *_WHO, *words], cwd=folder, input=given, capture_output=True, check=True).stdout


def _repository(folder: Path, files: int) -> GitRepository:
    folder.mkdir()
    git(folder, "init", "-q")
    for number in range(files):
        place = folder / f"d{number % 100}"
        place.mkdir(exist_ok=True)
        (place / f"f{number}.txt").write_text("".join(f"line {line} of {number}\n" for line in range(20)))
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    found = GitRepository.find(str(folder))
    assert found is not None
    return found


def _cost(work: Callable[[], object]) -> tuple[float, float]:
    """Return elapsed and CPU time in milliseconds, with that of child processes."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    begin = time.perf_counter()
    work()
    elapsed = time.perf_counter() - begin
    later = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(b.ru_utime - a.ru_utime + b.ru_stime - a.ru_stime for a, b in zip(usage, later, strict=True))
    return 1000 * elapsed, 1000 * cpu


def _end(capture: Capture, number: int, target: FileCall | None, captured: list[dict[str, Any]]) -> None:
    found = capture.end(f"{number}", target)
    captured += [found] if found else []


def _captures(folder: Path) -> list[Row]:
    repo = _repository(folder / "many", FILES)
    seen: dict[str, list[tuple[float, float]]] = {}
    captured: list[dict[str, Any]] = []
    for number in range(ROUNDS + 1):
        path = f"d{number}/f{number}.txt"
        file = folder / "many" / path
        for kind, target in (("tool", FileCall([path], {"content": ""})), ("shell", None)):
            capture = Capture(repo, "claude:1")
            content = file.read_text() + f"{kind} {number}\n"
            if target is not None:
                target.arguments["content"] = content
            begun = _cost(partial(capture.begin, f"{number}", target))
            file.write_text(content)
            ended = _cost(partial(_end, capture, number, target, captured))
            seen.setdefault(f"before a {kind} call", []).append(begun)
            seen.setdefault(f"after a {kind} call", []).append(ended)
    rows = []
    for name, values in seen.items():
        most = "<= 15" if "tool" in name else "<= 60"
        rows.append(row(f"capture {name}, elapsed", Figure(one for one, _ in values[1:]), "ms", target=most))
        rows.append(row(f"capture {name}, CPU", Figure(one for _, one in values[1:]), "ms"))
    return [*rows, _size(folder, captured)]


def _size(folder: Path, captured: list[dict[str, Any]]) -> Row:
    """Measure what an edit takes in the log, without git's objects."""
    path = folder / "size.db"
    with Decklog.open(path) as log:
        before = log.db.file_bytes()
        number = 0
        for _ in range(40):
            for one in captured:
                number += 1
                record_captured(log, one, session="claude:0d7f7a1e-1111-4222-8333-123456789abc", call_id=f"toolu_{number:024}")
        used = log.db.file_bytes() - before
    return row("log per edit", used / number, "bytes", target="<= 150")


def _history(folder: Path) -> Path:
    """Write a history of one file, half of whose commits are edits of an agent's."""
    place = folder / "long"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    lines = [f"line {number}" for number in range(1000)]
    stream = bytearray()
    for number in range(COMMITS):
        lines[(number * 7) % len(lines)] = f"line {number} changed"
        text = "".join(f"{line}\n" for line in lines).encode()
        stream += f"commit refs/heads/main\ncommitter A <a@example.invalid> {1_700_000_000 + number} +0000\n".encode()
        stream += b"data 1\nx\nM 100644 inline a.txt\ndata %d\n%s\n" % (len(text), text)
    git(place, "fast-import", "--quiet", given=bytes(stream))
    git(place, "reset", "-q", "--hard", "main")
    return place


def _record_history(place: Path, log: Decklog, repo: GitRepository) -> None:
    rows = git(place, "log", "--reverse", "--format=%x00%H", "--raw", "--no-abbrev").decode().split("\0")[1:]
    parent = None
    for number, one in enumerate(rows):
        commit, _, raw = one.partition("\n")
        _, _, old, new, _ = raw.strip().split()[:5]
        if number and number % 2:
            edit = {"old_blob": old, "new_blob": new, "session": "claude:1", "head": parent}
            log.edits.record(repo.identity, "a.txt", **edit)  # type: ignore[arg-type]
        parent = commit.strip()


def _blame(folder: Path) -> list[Row]:
    place = _history(folder)
    repo = GitRepository.find(str(place))
    assert repo is not None
    with Decklog.open(folder / "blame.db", durability="relaxed") as log:
        with log.transaction():
            _record_history(place, log, repo)
        floor, cold, cached = [], [], []
        for _ in range(5):
            log.edits.derive()
            floor.append(_cost(lambda: repo.call("blame", "--porcelain", "HEAD", "--", "a.txt"))[0])
            cold.append(_cost(lambda: blame_file(repo, log, "a.txt", "HEAD"))[0])
            cached.append(_cost(lambda: blame_file(repo, log, "a.txt", "HEAD"))[0])
    return [
        row("blame of 5,000 commits, cold, compared with git blame", Figure(cold), "ms", floor=Figure(floor), target="<= 1.5"),
        row(
            "blame of 5,000 commits, cached, compared with git blame", Figure(cached), "ms", floor=Figure(floor), target="<= 1.2"
        ),
    ]


def main() -> list[Row]:
    """Measure captures and blame; write benchmarks/results/provenance.md."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as folder:
        rows = [*_captures(Path(folder)), *_blame(Path(folder))]
    write("provenance", "Which agent wrote a line", rows)
    return rows


if __name__ == "__main__":
    main()
