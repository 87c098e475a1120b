"""The one commit that a fix is published as, and its message: whose words it answers, how, and by which test."""

from typing import TYPE_CHECKING

from decklog.guard.files.gitignore import IgnoreFile
from decklog.review.change import Change

if TYPE_CHECKING:
    from decklog.fixes.ground import FixContext

_LONGEST_TITLE = 90
_LONGEST_QUOTE = 2000


def committed(ground: "FixContext", tip: str, title: str) -> str:
    """Make one commit of a fix on its base, and hold it by a ref; the same fix gives the same commit."""
    repository, mend = ground.repository, ground.mend
    at = int(mend.created_at.timestamp())
    text = _message(ground, Change(repository, ground.base, tip), title)
    head = repository.commit(repository.tree(tip), [ground.base], text, repository.person(), at)
    repository.set_refs({f"{ground.refs}/head/{mend.rounds}": head})
    return head


def _message(ground: "FixContext", change: Change, title: str) -> str:
    mend, rules = ground.mend, ground.settings.rules
    quoted = "\n".join(f"> {line}" for line in _plain(ground.feedback.body[:_LONGEST_QUOTE]).strip().split("\n"))
    tests = IgnoreFile(ground.settings.tests)
    shown = ", ".join(one.path for one in change.paths if one.status != "D" and tests.covers(one.path)) or "none"
    why = str(mend.triage.get("root_cause") or "").strip()
    how = str(mend.triage.get("proposed_change") or "").strip()
    parts = [
        _title(title, is_typed=rules.titles == "conventional"),
        f"It was said:\n\n{quoted}",
        *(f"{head}: {_plain(text)}" for head, text in (("Cause", why), ("Change", how)) if text),
        f"Test, which fails without this change: {shown}",
    ]
    text = "\n\n".join(parts)
    lacking = [needed for needed in rules.body_needs if needed.lower() not in text.lower()]
    more = [f"{needed}\n\nWhat was said, what is changed for it, and the test that shows it are above." for needed in lacking]
    return "\n\n".join((text, *more, f"Feedback: {mend.feedback_id}")) + "\n"


def _title(words: str, *, is_typed: bool) -> str:
    line = " ".join(_plain(words).split())[:_LONGEST_TITLE].strip() or "what was said"
    return f"fix: {line}" if is_typed else f"Mend: {line}"


def _plain(text: str) -> str:
    """Take out signs that are none of text: a message is shown on terminals."""
    return "".join(sign for sign in text if sign in "\n\t" or sign.isprintable())
