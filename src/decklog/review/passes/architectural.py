"""Pass 3: the structure of a change: public names that it takes away, documents that it forgets, and a model's eyes."""

import re
from collections.abc import Iterator

from decklog.core.errors import Invalid
from decklog.guard.files.gitignore import Patterns
from decklog.guard.symbols.definition import Kind
from decklog.guard.symbols.python import definitions
from decklog.review.asking import Asked, asked
from decklog.review.change import Change
from decklog.review.result import Finding, PassResult, Severity, passed
from decklog.review.settings import ReviewSettings, Rules
from decklog.review.structure.looking import structure

_MOST = 20
_NO_DOCS = "docs-not-needed:"


def architectural(change: Change, settings: ReviewSettings, ask: Asked) -> PassResult:
    """Look at the structure of a change."""
    found = [*_removed_names(change, Patterns(settings.tests)), *_forgotten_documents(change, settings.rules)]
    found += structure(change, settings)
    if 3 not in settings.rules.model_passes:
        return passed(3, found, by=["names", "structure"])
    said = ask(3, [("message", change.message), ("diff", change.diff)])
    more = [] if said.data is None else asked(said.data)
    return passed(3, [*found, *more], unproven=said.why, is_weather=said.is_weather, by=["names", "structure", *said.by])


def _removed_names(change: Change, tests: Patterns) -> Iterator[Finding]:
    """Name the public functions and classes that are gone and that the message does not speak of."""
    kept = {name for one in change.paths for name in _public(change.content(one.path), one.path)}
    for one in change.paths:
        if one.status == "A" or tests.covers(one.path):
            continue
        before = _public(change.content(one.path, at_base=True), one.path)
        # One that moved to another file of the change is still there, under another roof.
        gone = sorted(name for name in before - kept if name.rpartition(".")[2] not in change.message)
        for name in gone[:_MOST]:
            # Whoever has no reason to look into a module does not miss what was only its own.
            severity = Severity.SIGNIFICANT if _is_offered(change, one.path, name) else Severity.MINOR
            text = f"the public name {name} is gone, and the message says nothing of it"
            yield Finding(severity=severity, kind="public-name", text=text, file=one.path, remedy="Say so, or keep it.")


def _is_offered(change: Change, path: str, name: str) -> bool:
    """Say whether a package offers a name to others: its `__init__.py` does, or there is none and the module is all."""
    folder, first = path.rpartition("/")[0], name.partition(".")[0]
    texts = []
    while folder:
        texts.append(change.content(f"{folder}/__init__.py", at_base=True))
        folder = folder.rpartition("/")[0]
    found = [text.decode(errors="replace") for text in texts if text is not None]
    return not found or any(re.search(rf"\b{re.escape(first)}\b", text) for text in found)


def _public(content: bytes | None, path: str) -> set[str]:
    if content is None or not path.endswith(".py"):
        return set()
    try:
        found = list(definitions(content))
    except Invalid:
        return set()
    named = {one.qualname for one in found if one.kind is not Kind.IMPORT}
    return {name for name in named if not any(part.startswith("_") for part in name.split("."))}


def _forgotten_documents(change: Change, rules: Rules) -> Iterator[Finding]:
    """Ask for documents where the repository's rules do: a change of its source comes with one of its documents."""
    if not rules.source or not rules.docs or _NO_DOCS in change.message.lower():
        return
    source, docs = Patterns(rules.source), Patterns(rules.docs)
    paths = [one.path for one in change.paths]
    if any(map(source.covers, paths)) and not any(map(docs.covers, paths)):
        remedy = "Change the documents, or write `Docs-not-needed: why` into the message."
        yield Finding(
            severity=Severity.SIGNIFICANT, kind="documents", text="the source changes and no document does", remedy=remedy
        )
