"""What is kept under `refs/decklog/`, told by git alone: it is there also when the log is lost."""

from collections.abc import Iterator
from dataclasses import dataclass

from decklog.conductor.git.repository import HOME, Repository

_FORMAT = "%(refname)%00%(objectname)%00%(committerdate:iso-strict)%00%(contents:subject)"


@dataclass(frozen=True)
class KeptRef:
    """One commit that is held: of which run, task and attempt, and what of it. The target of a run has no task."""

    run: str
    task: str
    attempt: str
    what: str
    commit: str
    at: str
    subject: str
    ref: str


def kept(repository: Repository, run: str | None = None) -> list[KeptRef]:
    """List what is kept, of one run or of all; what an attempt holds several times over is listed once."""
    found = list(_read(repository, HOME if run is None else f"{HOME}/{run}"))
    seen: set[tuple[str, str, str, str]] = set()
    told = []
    for one in found:
        key = (one.run, one.task, one.attempt, one.commit)
        if key not in seen:
            seen.add(key)
            told.append(one)
    return told


def _read(repository: Repository, beneath: str) -> Iterator[KeptRef]:
    lines = repository.on_refs("for-each-ref", f"--format={_FORMAT}", beneath).out.decode(errors="replace").splitlines()
    # The branch's own commits come first, then what was left beside them.
    for line in sorted(lines, key=_place):
        ref, commit, at, subject = line.split("\0")
        run, _, rest = ref.removeprefix(f"{HOME}/").partition("/")
        parts = rest.split("/")
        if parts[0] == "tasks" and len(parts) >= 4:
            yield KeptRef(run, parts[1], parts[2], "/".join(parts[3:]), commit, at, subject, ref)
        else:
            yield KeptRef(run, "", "", rest, commit, at, subject, ref)


def _place(line: str) -> tuple[str, int]:
    folder, _, what = line.partition("\0")[0].rpartition("/")
    order = ("target", "tip", "changed", "folder")
    return folder, order.index(what) if what in order else len(order)
