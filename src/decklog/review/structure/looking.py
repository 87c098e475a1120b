"""Everything that the rules over a whole tree find, by the pass that says it."""

from collections.abc import Callable, Iterator, Sequence

from decklog.review.change import Change
from decklog.review.result import Finding, Severity
from decklog.review.settings import ReviewSettings
from decklog.review.structure.callers import callers
from decklog.review.structure.circles import circles, layers
from decklog.review.structure.claims import claims
from decklog.review.structure.landed import generated, migrations
from decklog.review.structure.lost_keys import lost_keys
from decklog.review.structure.named_paths import named_paths
from decklog.review.structure.removed_names import removed_names
from decklog.review.structure.stale_comments import stale_comments
from decklog.review.structure.stale_documents import stale_documents
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import Tree, tree_of
from decklog.review.structure.untested import fitted, untested
from decklog.review.structure.versions import versions

_OF_STRUCTURE: tuple[Callable[[Tree], Iterator[Trouble]], ...] = (
    *(
        callers,
        removed_names,
        lost_keys,
        circles,
        layers,
        migrations,
        generated,
        versions,
        stale_documents,
        stale_comments,
        untested,
        fitted,
    ),
)
_MOST_OF_A_KIND = 10


def structure(change: Change, settings: ReviewSettings) -> list[Finding]:
    """Tell what a change leaves behind in files that it touches and in those that it does not."""
    tree = tree_of(change, tuple(settings.tests))
    needed = Severity.SIGNIFICANT if settings.rules.needs_tests else Severity.MINOR
    return [
        _finding(one, needed if one.kind == "untested" else Severity.MINOR) for look in _OF_STRUCTURE for one in _some(look(tree))
    ]


def of_message(change: Change, tests: Sequence[str]) -> list[Finding]:
    """Tell what the message of a change claims and the change does not do."""
    return [_finding(one, Severity.MINOR) for one in _some(claims(tree_of(change, tuple(tests))))]


def of_paths(change: Change, tests: Sequence[str]) -> list[Finding]:
    """Tell which names that callers give lead to files unseen."""
    return [_finding(one, Severity.MINOR) for one in _some(named_paths(tree_of(change, tuple(tests))))]


def _some(found: Iterator[Trouble]) -> Iterator[Trouble]:
    for count, one in enumerate(found):
        if count < _MOST_OF_A_KIND:
            yield one


def _finding(one: Trouble, severity: Severity) -> Finding:
    return Finding(severity=severity, kind=one.kind, text=one.text, file=one.file, line=one.line, remedy=one.remedy)
