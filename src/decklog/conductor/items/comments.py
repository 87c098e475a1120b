"""Comments of people on lines of a change."""

from decklog.conductor.git.repository import Repository
from decklog.core.errors import Invalid, NotFound

_LONGEST_LINE = 200


def located(repository: Repository, commit: str, path: str, line: int) -> str:
    """Return the line that a comment is about. Raise NotFound for a file or a line that the change does not have."""
    content = repository.read(commit, path) if commit else None
    if content is None:
        raise NotFound(f"the change has no file {path!r}", hint="See: decklog run diff ITEM --stat", path=path)
    lines = content.decode(errors="replace").split("\n")
    if not 1 <= line <= len(lines):
        raise Invalid(f"{path} has {len(lines)} lines", hint="See: decklog run diff ITEM", field="line")
    return lines[line - 1].strip()[:_LONGEST_LINE]
