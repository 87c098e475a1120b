"""Secrets in the lines that a change adds, and which of them are surely none.

The redactor would rather take out a word too much than leave a secret in a log. A gate that stops work has to be surer: what was
found by its name alone, and is plainly a word or an expression of a program, or stands in a test and does not look random, is
told and does not stop anything.
"""

import re
from collections.abc import Iterator, Sequence

from decklog.redaction import scan
from decklog.redaction.judge import looks_random
from decklog.review.change import AddedLine
from decklog.review.result import Finding, Severity

_KIND = re.compile(r"\[redacted:([a-z0-9-]+)\]")
# Kinds that go by what a value is called, and not by what it looks like.
_BY_NAME = frozenset(
    (
        *("password", "secret", "token", "api-key", "key", "command-password", "told-password", "told-secret", "told-token"),
        *("directive-password", "store-password", "pin", "basic-auth", "auth", "url-password"),
        *("credential", "printed-secret", "network-password", "connection-password", "typed-password", "listed-password"),
        *("cookie", "session", "code", "userlist-password", "directive-secret", "directive-key"),
    )
)
# Kinds that go by a word before a blank, which in a program are words of a list or of a sentence.
_BY_WORD = frozenset(("directive-password", "command-password", "told-password"))
_CODE = (
    ".py",
    ".pyi",
    ".js",
    ".jsx",
    ".ts",
    ".tsx",
    ".go",
    ".rs",
    ".java",
    ".c",
    ".h",
    ".cpp",
    ".cs",
    ".rb",
    ".php",
    ".kt",
    ".swift",
)
_PAGES = (".html", ".vue", ".svelte", ".erb", ".j2")
_WORDS = re.compile(r"[A-Za-z][A-Za-z _.-]*")
# Calls, patterns, indexes and templates; one such sign alone may be a part of a password.
_OF_PROGRAMS = re.compile(r"[()\[\]{}|\\<>]")
# A name that somebody gave, and what calls a function: `run_1`, `API_KEY2`, `config.get(`.
_NAME = re.compile(r"[A-Za-z]+(?:_[A-Za-z]*\d{0,2})+|[\w.]+\(")
# What stands for a value, by the name of what belongs there, as documents have it; and a name made of that of a kind.
_PLACE = re.compile(r"(?:.*[^A-Za-z0-9])?(?:[A-Z]+_)*(?:TOKEN|PASSWORD|PASSWD|SECRET|KEY|CREDENTIALS?)|.*%20TOKEN")
_OF_KIND = re.compile(r"(?i)(?=[^\d]*(?:\d[^\d]*){0,2}$).*(?:pass(?:word|wd|phrase)|secret|token|credential|apikey).*")
_DOCUMENTS = (".md", ".rst", ".adoc")
# A verdict, and not a password: {"pass": "done"}.
_PASS = re.compile(r"""(?i)(?<![a-z])["']?pass["']?\s*[:=]""")


def secrets(path: str, lines: Sequence[AddedLine], *, is_test: bool) -> Iterator[Finding]:
    """Find secrets in added lines: line by line, and together for those that go over several."""
    found = False
    for line in lines:
        told, changed = scan(line.text)
        if changed:
            found = True
            yield _secret(told, line.text, path, line.number, is_test=is_test)
    together = "\n".join(line.text for line in lines)
    told, changed = scan(together)
    if changed and not found:
        yield _secret(told, together, path, lines[0].number, is_test=is_test)


def _secret(told: str, text: str, path: str, number: int, *, is_test: bool) -> Finding:
    # What was taken out before is a word about secrets, as those have it that try a redactor.
    found = [(kind, value) for kind, value in _values(told, text) if not value.startswith("[redacted:")]
    kinds = list(dict.fromkeys(kind for kind, _ in found))
    is_none = bool(kinds) and all(
        kind in _BY_NAME and _is_harmless(kind, value, path, text, is_test=is_test) for kind, value in found
    )
    return Finding(
        severity=Severity.MINOR if is_none else Severity.BLOCKING,
        kind="named-like-a-secret" if is_none else "secret",
        text=f"{'called like a secret' if is_none else 'a secret'}: {', '.join(kinds) or 'secret'}",
        file=path,
        line=number,
        remedy="Take it out of every commit of the change, and have it replaced where it is used.",
    )


def _values(told: str, text: str) -> list[tuple[str, str]]:
    """Give what was taken out of a text, by its kind; of what can't be told apart, the whole text."""
    parts = _KIND.split(told)
    pattern = "".join(re.escape(part) if number % 2 == 0 else "(.*?)" for number, part in enumerate(parts))
    found = re.fullmatch(pattern, text, re.DOTALL)
    kinds = parts[1::2]
    return list(zip(kinds, found.groups(), strict=True)) if found is not None else [(kind, text) for kind in kinds]


def _is_harmless(kind: str, value: str, path: str, text: str, *, is_test: bool) -> bool:
    """Say whether a value that is only called like a secret is plainly none where it stands."""
    if path.endswith(".py") and (_is_shown(value, text) or (is_test and _is_piece(value, text))):
        return True
    if looks_random(value):
        return False
    # Those of tests are made up; what a service gave out has a form of its own, or looks random.
    if is_test or _PLACE.fullmatch(value):
        return True
    if path.endswith(_DOCUMENTS) and _is_in_ticks(value, text) and _OF_KIND.fullmatch(value):
        return True
    is_program = path.endswith((*_CODE, *_PAGES))
    if is_program and (len(_OF_PROGRAMS.findall(value)) >= 2 or _NAME.fullmatch(value)):
        return True
    if is_program and kind in _BY_WORD and value.isalpha():
        return True
    is_word = _WORDS.fullmatch(value) is not None
    return is_word and is_program and _PASS.search(text) is not None


def _is_shown(value: str, text: str) -> bool:
    """Say whether Python only speaks of a value: between ticks in words about it, or in a raw text, which is a pattern."""
    if _is_in_ticks(value, text):
        return True
    before = text[: text.find(value)]
    return re.search(r"""\br(?P<q>["'])(?:(?!(?P=q)).)*$""", before) is not None


def _is_in_ticks(value: str, text: str) -> bool:
    place = text.find(value)
    return text[:place].count("`") % 2 == 1 and "`" in text[place + len(value) :]


def _is_piece(value: str, text: str) -> bool:
    """Say whether a text is put together where it stands, so that what it comes to is written nowhere: "a" + "b" * 9."""
    literal = rf"""["']{re.escape(value)}["']"""
    return re.search(rf"""["']\s*\+\s*{literal}|{literal}\s*(?:\+\s*["']|\*\s*\d)""", text) is not None
