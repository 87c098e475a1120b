"""What captures cost in a repository of 10,000 files, and blame and statistics compared with git's own."""

import os
import resource
import subprocess
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from hashlib import sha1
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure
from benchmarks.measure import Row, row, write
from decklog import Decklog
from decklog.agents.origins.statistics import StatisticsKey, collect_statistics
from decklog.provenance.blame import blame_file
from decklog.provenance.capture import Capture
from decklog.provenance.git import GitRepository
from decklog.provenance.recording import record_captured
from decklog.provenance.tool_calls import FileCall

FILES, COMMITS, ROUNDS, EDITS = 10_000, 5_000, 15, 10_000
_NOTES = (
    "in turns with git; CPU time includes that of git's processes, and other work changes it little",
    "elapsed time on a machine that others used too: compare it with that of one call of git in the same turns",
    "captures: one changed file in a repository of 10,000 files, whose index is clean",
    "log per edit: the growth of a SQLite log by 10,000 edits, each recorded on its own",
    "blame: a file of 1,000 lines, half of whose commits are edits of an agent; cold means without kept origins",
)
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


def _captures(folder: Path) -> list[Row]:
    repo = _repository(folder / "many", FILES)
    seen: dict[str, list[tuple[float, float]]] = {}
    for number in range(ROUNDS + 1):
        path = f"d{number}/f{number}.txt"
        file = folder / "many" / path
        floors = {"tool": ("hash-object", "-w", path), "shell": ("status", "--porcelain")}
        for kind, target in (("tool", FileCall([path], {"content": ""})), ("shell", None)):
            capture = Capture(repo, "claude:1")
            content = file.read_text() + f"{kind} {number}\n"
            if target is not None:
                target.arguments["content"] = content
            seen.setdefault(f"git {kind}", []).append(_cost(partial(repo.call, *floors[kind])))
            begun = _cost(partial(capture.begin, f"{number}", target))
            file.write_text(content)
            ended = _cost(partial(capture.end, f"{number}", target))
            seen.setdefault(f"before a {kind} call", []).append(begun)
            seen.setdefault(f"after a {kind} call", []).append(ended)
            seen.setdefault(f"around a {kind} call", []).append((begun[0] + ended[0], begun[1] + ended[1]))
    return [
        *_of_hooks(seen, "before a tool call"),
        *_of_hooks(seen, "after a tool call"),
        *_of_hooks(seen, "around a shell call"),
    ]


def _of_hooks(seen: dict[str, list[tuple[float, float]]], name: str) -> list[Row]:
    """Compare a capture with one call of git: `git hash-object -w` of the file, or `git status`."""
    kind = name.split()[-2]
    elapsed, cpu = (Figure(one[place] for one in seen[name][1:]) for place in (0, 1))
    git_elapsed, git_cpu = (Figure(one[place] for one in seen[f"git {kind}"][1:]) for place in (0, 1))
    command = {"tool": "git hash-object", "shell": "git status"}[kind]
    return [
        row(f"capture {name}, elapsed", elapsed, "ms", target="<= 15" if kind == "tool" else "<= 60"),
        row(f"capture {name}, elapsed, compared with {command}", elapsed, "ms", floor=git_elapsed),
        row(f"capture {name}, CPU, compared with {command}", cpu, "ms", floor=git_cpu),
    ]


def _size(folder: Path) -> Row:
    """Measure what an edit takes in the log, without git's objects: 200 files, edited in turns by a session."""
    who: dict[str, Any] = {"session": "claude:0d7f7a1e-1111-4222-8333-123456789abc"}
    who["run_id"] = who["session"].replace(":", "-")
    with Decklog.open(folder / "size.db", durability="relaxed") as log:
        before = log.db.file_bytes()
        for number in range(EDITS):
            names = {"old": f"{number % 200} {number // 200}", "new": f"{number % 200} {number // 200 + 1}"}
            blobs = {name: sha1(text.encode()).hexdigest() for name, text in names.items()}
            edit = {"path": f"src/package/module_{number % 200}.py", **blobs}
            captured = {"repository": "a" * 40, "head": sha1(b"%d" % (number // 20)).hexdigest(), "edits": [edit]}
            record_captured(log, captured, call_id=f"toolu_{number:024}", **who)
        used = log.db.file_bytes() - before
    return row("log per edit", used / EDITS, "bytes", target="<= 150")


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
            floor.append(_cost(lambda: repo.call("blame", "--porcelain", "HEAD", "--", "a.txt"))[1])
            cold.append(_cost(lambda: blame_file(repo, log, "a.txt", "HEAD"))[1])
            cached.append(_cost(lambda: blame_file(repo, log, "a.txt", "HEAD"))[1])
    name = "blame of 5,000 commits, {}, CPU, compared with git blame"
    return [
        row(name.format("cold"), Figure(cold), "ms", floor=Figure(floor), target="<= 1.5"),
        row(name.format("cached"), Figure(cached), "ms", floor=Figure(floor), target="<= 1.2"),
    ]


def _statistics(folder: Path) -> list[Row]:
    """Count the lines of 1,000 commits: of the same history, and of this repository, which has large commits and merges."""
    small, large = GitRepository.find(str(folder / "long")), GitRepository.find(str(Path(__file__).parent))
    assert small is not None
    found = [("of 1,000 small commits", small, "HEAD~1000..HEAD", 3)]
    if large is not None:
        commits = large.text("rev-list", "--first-parent", "HEAD").split()
        counts = partial(large.text, "rev-list", "--count")
        place = bisect_left(range(len(commits)), 1000, key=lambda number: int(counts(f"{commits[number]}..HEAD")))
        found.append(("of 1,000 commits of this repository", large, f"{commits[min(place, len(commits) - 1)]}..HEAD", 1))
    with Decklog.open(folder / "blame.db", durability="relaxed") as log:
        return [one for name, repo, span, rounds in found for one in _of_statistics(log, name, repo, span, rounds)]


def _of_statistics(log: Decklog, name: str, repo: GitRepository, span: str, rounds: int) -> list[Row]:
    floor, taken = [], []
    for _ in range(rounds):
        floor.append(_cost(lambda: repo.call("log", "-p", "-c", "-M", "-U0", span))[1] / 1000)
        taken.append(_cost(lambda: collect_statistics(repo, log, span, StatisticsKey.AGENT))[1] / 1000)
    return [
        row(f"stats {name}, CPU", Figure(taken), "s", target="<= 5"),
        row(f"stats {name}, CPU, compared with git log -p", Figure(taken), "s", floor=Figure(floor)),
    ]


def main() -> list[Row]:
    """Measure captures, blame and statistics; write benchmarks/results/provenance.md."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="decklog-bench-") as folder:
        place = Path(folder)
        rows = [*_captures(place), _size(place), *_blame(place), *_statistics(place)]
    write("provenance", "Which agent wrote a line", rows, _NOTES)
    return rows


if __name__ == "__main__":
    main()
