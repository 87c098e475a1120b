"""Notes of commits, read and written in bulk by the git program."""

from collections.abc import Iterable, Iterator, Mapping

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.provenance.git import GitFailed, GitRepository

AI_REF = "refs/notes/ai"
# Notes on stashes. They are not shared: a stash is not pushed.
STASH_REF = "refs/notes/ai-stash"
# Git resolves HEAD and branches by names; only full ids are commits here.
_HEX = frozenset("0123456789abcdef")


def resolve_commit(repo: GitRepository, revision: str) -> str:
    """Return the full id of a commit; raise NotFound where there is none."""
    found = repo.resolve(f"{revision}^{{commit}}")
    if found is None:
        raise NotFound(f"there is no commit {revision}", hint="List commits: git log --oneline")
    return found


def read_blobs(repo: GitRepository, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the contents of objects by one process; raise NotFound for one that is gone."""
    names = list(blobs)
    out = repo.call("cat-file", "--batch", given="".join(f"{name}\n" for name in names).encode())
    place = 0
    for name in names:
        end = out.index(b"\n", place)
        head = out[place:end].split(b" ")
        if len(head) != 3:
            raise NotFound(f"the object {name} is gone from the repository")
        start, size = end + 1, int(head[2])
        yield name, out[start : start + size]
        place = start + size + 1


def read_notes(repo: GitRepository, *, ref: str = AI_REF) -> Iterator[tuple[str, str]]:
    """Yield every commit that has a note, with the note's text."""
    listed = repo.call("notes", f"--ref={ref}", "list", accepted=(0, 1)).decode().split("\n")
    pairs = [line.split(" ") for line in listed if line]
    texts = dict(read_blobs(repo, (note for note, _ in pairs)))
    for note, commit in pairs:
        yield commit, texts[note].decode(errors="replace")


def read_note(repo: GitRepository, commit: str, *, ref: str = AI_REF) -> str | None:
    """Return the note of a commit, or None."""
    out = repo.call("notes", f"--ref={ref}", "list", commit, accepted=(0, 1)).decode().strip()
    return None if not out else next(text for _, text in read_blobs(repo, [out])).decode(errors="replace")


def write_notes(repo: GitRepository, notes: Mapping[str, str], *, ref: str = AI_REF, subject: str = "Write notes") -> int:
    """Write notes by full commit ids as one commit of the notes ref, replacing those that are there."""
    if not notes:
        return 0
    if wrong := [commit for commit in notes if len(commit) not in (40, 64) or not set(commit) <= _HEX]:
        raise Invalid(f"not a full commit id: {wrong[0]}")
    who = repo.call("var", "GIT_COMMITTER_IDENT").decode().strip()
    tip = repo.resolve(ref)
    stream = b"".join(_import_stream(notes, ref, subject, who, tip))
    try:
        repo.call("fast-import", "--quiet", "--date-format=raw", "--done", given=stream)
    except GitFailed as problem:
        if "Not updating" in str(problem):
            raise Conflict(f"{ref} changed while notes were written", hint="Run the command again.") from None
        raise
    return len(notes)


def _import_stream(notes: Mapping[str, str], ref: str, subject: str, who: str, tip: str | None) -> Iterator[bytes]:
    yield f"feature done\ncommit {ref}\ncommitter {who}\n".encode()
    yield _data(subject)
    if tip:
        yield f"from {tip}\n".encode()
    for commit, text in notes.items():
        yield f"N inline {commit}\n".encode()
        yield _data(text)
    yield b"done\n"


def _data(text: str) -> bytes:
    content = text.encode()
    return b"data %d\n%b\n" % (len(content), content)
