"""Pass 5: the words of a change. Its form is a matter of rules; its tone, only where it is asked for, of a model."""

import re
from collections.abc import Iterator, Sequence

from decklog.conductor.settings.configuration import TESTS
from decklog.review.asking import Asked, asked
from decklog.review.change import Change
from decklog.review.result import Finding, PassResult, Severity, passed, skipped
from decklog.review.settings import Rules
from decklog.review.structure.looking import of_message

TYPES = ("feat", "fix", "docs", "chore", "refactor", "test", "perf", "ci", "build", "style", "revert")
_CONVENTIONAL = re.compile(rf"(?:{'|'.join(TYPES)})(?:\([\w./ -]+\))?!?: \S")
_UNFINISHED = re.compile(
    r"(?i)^(?:wip|fixup!|squash!|amend!|tmp|temp|asdf|update|updates|changes|fix|fixes|stuff|misc|minor)\W*$|^(?:fixup|squash|amend)!"
)
_PROGRAMS = r"claude|codex|copilot|chatgpt|gpt-|gemini|cursor"
_ATTRIBUTION = re.compile(
    rf"(?im)^\s*(?:🤖 )?(?:generated|made|written|created) (?:with|by|using) .*(?:{_PROGRAMS}|an? (?:ai|llm)\b)"
    rf"|^co-authored-by:.*(?:{_PROGRAMS}|noreply@anthropic|noreply@openai|\bbot\b)"
)


def prose(change: Change, rules: Rules, ask: Asked, *, tests: Sequence[str] = TESTS) -> PassResult:
    """Look at the messages of a change; one that is not committed yet has none."""
    if not change.messages:
        return skipped(5, "there is no message yet")
    found = [finding for message in change.messages for finding in _of_message(message, rules)]
    found += of_message(change, tests)
    if 5 not in rules.model_passes or any(one.severity is Severity.SIGNIFICANT for one in found):
        return passed(5, found, by=["rules"])
    said = ask(5, [("message", change.message), ("diff", change.diff)])
    more = [] if said.data is None else asked(said.data)
    return passed(5, [*found, *more], unproven=said.why, is_weather=said.is_weather, by=["rules", *said.by])


def _of_message(message: str, rules: Rules) -> Iterator[Finding]:
    title, _, body = message.partition("\n")
    if len(title) > rules.title_length:
        yield _bad(
            "title", f"the first line has {len(title)} characters, and at most {rules.title_length} are read", "Shorten it."
        )
    if body and body.partition("\n")[0].strip():
        text = "no empty line follows the first: git takes both for the title"
        yield Finding(severity=Severity.MINOR, kind="body", text=text, remedy="Leave the second line empty.")
    if _UNFINISHED.search(title):
        yield _bad("title", f"the first line says nothing: {title[:60]!r}", "Say what the change does.")
    if rules.titles == "conventional" and not _CONVENTIONAL.match(title):
        yield _bad(
            "title", f"the first line has no type: {title[:60]!r}", f"Begin it with one of {', '.join(TYPES)} and a colon."
        )
    for needed in rules.body_needs:
        if needed.lower() not in body.lower():
            yield _bad("body", f"the message has no {needed!r}", f"Write it below a line {needed!r}.")
    if (claimed := _ATTRIBUTION.search(message)) is not None:
        yield _bad("attribution", f"the message credits a program: {claimed[0].strip()[:80]!r}", "Take the line out.")


def _bad(kind: str, text: str, remedy: str) -> Finding:
    return Finding(severity=Severity.SIGNIFICANT, kind=kind, text=text, remedy=remedy)
