"""Notes for the result of a squash or rebase merge, from the notes of the merged commits."""

from typing import TYPE_CHECKING

from decklog.agents.origins.exporting import ExportSummary, export_notes
from decklog.agents.origins.importing import import_notes
from decklog.core.errors import Invalid, NotFound

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.provenance.git import GitRepository


def attribute_merged(repo: "GitRepository", log: "Decklog", merged: str, result: str, *, dry_run: bool = False) -> ExportSummary:
    """Write the note of a merge's result from the notes of the commits BASE..HEAD and from the log."""
    base, dots, head = merged.partition("..")
    if not dots or not base or not head:
        raise Invalid(f"{merged!r} is not BASE..HEAD", field="merged")
    for name in (base, head, result):
        if repo.resolve(f"{name}^{{commit}}") is None:
            raise NotFound(f"there is no commit {name}", hint="Fetch it: in CI, check out with the whole history.")
    commits = set(repo.text("rev-list", f"{base}..{head}", "--").split())
    import_notes(repo, log, commits=commits)
    made = repo.resolve(f"{result}^{{commit}}")
    return export_notes(repo, log, f"{base}..{made}", dry_run=dry_run)
