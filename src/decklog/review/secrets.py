"""Secrets in the lines that a change adds.

The redactor rather takes out a word too many. The gate stops work, so it has to be surer: a value that was found by its
name or by a sentence, and is plainly a word, an expression or a test's own, is reported and stops nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from decklog.guard.files.gitignore import IgnoreFile
from decklog.redaction import explain
from decklog.redaction.judge import looks_random
from decklog.review.change import AddedLine, Change
from decklog.review.result import Finding, Severity
from decklog.review.sources import suffix_of

_CODE = re.compile(r"\.(?:pyi?|[jt]sx?|go|rs|java|c|h|cpp|cs|rb|php|kt|swift|html|vue|svelte|erb|j2)")
_DOCUMENTS = (".md", ".rst", ".adoc")
_WORDS = re.compile(r"[A-Za-z][A-Za-z _.-]*")
# Signs of calls, patterns, indexes and templates. One alone may be part of a password.
_SIGNS = re.compile(r"[()\[\]{}|\\<>]")
# `run_1`, `API_KEY2`, `config.get(`
_IDENTIFIER = re.compile(r"[A-Za-z]+(?:_[A-Za-z]*\d{0,2})+|[\w.]+\(")
_PLACEHOLDER = re.compile(r"(?:.*[^A-Za-z0-9])?(?:[A-Z]+_)*(?:TOKEN|PASSWORD|PASSWD|SECRET|KEY|CREDENTIALS?)|.*%20TOKEN")
_NAMES_A_KIND = re.compile(r"(?i)(?=[^\d]*(?:\d[^\d]*){0,2}$).*(?:pass(?:word|wd|phrase)|secret|token|credential|apikey).*")
# An outcome, not a password: {"pass": "done"}.
_OUTCOME = re.compile(r"""(?i)(?<![a-z])["']?pass["']?\s*[:=]""")
_RAW_TEXT = re.compile(r"""\br(?P<q>["'])(?:(?!(?P=q)).)*$""")


def find_secrets(change: Change, tests: IgnoreFile, samples: IgnoreFile) -> Iterator[Finding]:
    """Yield the secrets that a change adds, also those that a later commit of it removes again."""
    for path, lines in change.added_by_file.items():
        if samples.covers(path):
            text = "sample secrets: this file was not searched"
            yield Finding(severity=Severity.INFO, kind="not-checked", text=text, file=path)
        else:
            yield from secrets_in(path, lines, is_test=tests.covers(path))
    for commit, undone in change.earlier:
        for path in dict.fromkeys(line.file for line in undone if not samples.covers(line.file)):
            added = [line for line in undone if line.file == path]
            for one in secrets_in(path, added, is_test=tests.covers(path)):
                yield replace(one, text=f"{one.text}, in commit {commit[:12]}, which is published too", line=None)


def secrets_in(path: str, lines: Sequence[AddedLine], *, is_test: bool) -> Iterator[Finding]:
    """Yield the secrets of added lines: of each line, or of all together where one spans several."""
    found = [one for line in lines if (one := _secret(line.text, path, line.number, is_test=is_test)) is not None]
    if not found and lines:
        whole = _secret("\n".join(line.text for line in lines), path, lines[0].number, is_test=is_test)
        found = [whole] if whole is not None else []
    yield from found


def _secret(text: str, path: str, number: int, *, is_test: bool) -> Finding | None:
    """Return the finding for a text, None when it has no secret."""
    every = explain(text)
    if not every:
        return None
    # A marker is what the redactor left of a secret.
    found = [one for one in every if not text[one.start : one.end].startswith("[redacted:")]
    is_harmless = bool(found) and all(
        # Without a score a rule knew the format of the secret, so it is one.
        one.score is not None
        and _is_harmless(text[one.start : one.end], path, text, is_named=one.reason.startswith("name "), is_test=is_test)
        for one in found
    )
    kinds = ", ".join(dict.fromkeys(one.kind for one in found)) or "secret"
    return Finding(
        severity=Severity.MINOR if is_harmless else Severity.BLOCKING,
        kind="named-like-a-secret" if is_harmless else "secret",
        text=f"{'named like a secret' if is_harmless else 'a secret'}: {kinds}",
        file=path,
        line=number,
        remedy="Remove it from every commit of the change, and replace it where it is used.",
    )


def _is_harmless(value: str, path: str, text: str, *, is_named: bool, is_test: bool) -> bool:
    """Return whether a value that is only named like a secret is plainly none."""
    suffix = suffix_of(path)
    if suffix == ".py" and (_is_quoted(value, text) or (is_test and _is_item(value, text))):
        return True
    if looks_random(value):
        return False
    # Tests make their secrets up; real ones have a format or look random.
    if is_test or _PLACEHOLDER.fullmatch(value):
        return True
    if suffix in _DOCUMENTS and _is_in_ticks(value, text) and _NAMES_A_KIND.fullmatch(value):
        return True
    if not _CODE.fullmatch(suffix):
        return False
    if len(_SIGNS.findall(value)) >= 2 or _IDENTIFIER.fullmatch(value) or (not is_named and value.isalpha()):
        return True
    return _WORDS.fullmatch(value) is not None and _OUTCOME.search(text) is not None


def _is_quoted(value: str, text: str) -> bool:
    """Return whether Python only mentions a value: between backticks, or in a raw string, which is a pattern."""
    return _is_in_ticks(value, text) or _RAW_TEXT.search(text[: text.find(value)]) is not None


def _is_in_ticks(value: str, text: str) -> bool:
    start = text.find(value)
    return text[:start].count("`") % 2 == 1 and "`" in text[start + len(value) :]


def _is_item(value: str, text: str) -> bool:
    """Return whether a literal is joined to another, so the whole is written nowhere: "a" + "b" * 9."""
    literal = rf"""["']{re.escape(value)}["']"""
    return re.search(rf"""["']\s*\+\s*{literal}|{literal}\s*(?:\+\s*["']|\*\s*\d)""", text) is not None
