"""Imports that a change adds: whether they close a circle, and whether a document of the project forbids them."""

import posixpath
import re
from collections.abc import Iterator

from decklog.review.rules.source import Source
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import Tree

_MOST_FILES = 400
_RULES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md", "CLAUDE.md", "README.md", "DESIGN.md", "HACKING.md")
_RULES_BELOW = re.compile(
    r"(?i)^(?:docs?|\.github)/(?:.*/)?[^/]*(?:archi|layer|contribut|design|structure|convention)[^/]*\.(?:md|rst|adoc|txt)$"
)
_NEVER = re.compile(r"(?i)\b(?:never|not|nothing|no|none|cannot|can't|don't|doesn't|forbidden|without|instead of)\b")
_ABOUT = re.compile(r"(?i)\b(?:import|depend|use|call|talk|touch|know|reach|access|go through|query|load|refer)\w*")
_ONLY = re.compile(r"(?i)\bonly\b|\bnobody (?:else|but)\b|\bnothing (?:else|but)\b")
_IMPORTS_ONLY = re.compile(
    r"(?i)\b(?:may|can|must|should) (?:only )?import\b[^.]*\bonly\b|\b(?:may |must )?only imports?\b|\bimports? only\b"
)
_NO_IO = re.compile(
    r"(?i)\bno (?:i/?o|input|side effects?|files?|network|database)\b|\bpure\b"
    r"|\bdoes not (?:read|write|do i/?o)|\bfree of (?:i/?o|side effects)"
)
_IO = re.compile(
    r"(?<![\w.])open\(|\.(?:read_text|write_text|read_bytes|write_bytes)\(|\b(?:requests"
    r"|httpx|urllib|socket|subprocess|sqlite3|psycopg\w*)\b"
    r"|\bos\.(?:environ|getenv|remove|listdir|system)\b|\b(?:fs|axios)\.\w+\("
    r"|(?<![\w.])fetch\(|\bprocess\.env\b|\bos\.(?:Open|ReadFile|WriteFile|Getenv)\("
    r"|\bhttp\.(?:Get|Post)\(|\bstd::(?:fs|net|env)\b|\bFiles\.\w+\("
)


def circles(tree: Tree) -> Iterator[Trouble]:
    """Find imports that lead back to the file that they stand in."""
    for source in tree.sources:
        if not source.is_test and source.text:
            for one in tree.new_imports(source):
                way = _way(tree, one.path, source.path) if one.is_at_once and not one.is_for_types else []
                if way:
                    names = " → ".join(posixpath.basename(path) for path in (source.path, *way))
                    text = f"the import closes a circle: {names}"
                    yield Trouble("circular-import", text, source.path, one.line, "Move what both need to a place of its own.")
                    break


def _way(tree: Tree, start: str, goal: str) -> list[str]:
    """Find the imports that lead from one file to another; of Go, to another of its folder."""
    came: dict[str, str] = {start: ""}
    pending = [start]
    while pending and len(came) <= _MOST_FILES:
        here = pending.pop(0)
        if here == goal or (goal.endswith(".go") and posixpath.dirname(here) == posixpath.dirname(goal)):
            way = [here]
            while came[way[-1]]:
                way.append(came[way[-1]])
            return way[::-1]
        for one in tree.imports(here):
            if one.is_at_once and not one.is_for_types and one.path not in came:
                came[one.path] = here
                pending.append(one.path)
    return []


# What documents forbid


def layers(tree: Tree) -> Iterator[Trouble]:
    """Find new imports, and reading and writing, that a sentence of the project's own documents forbids."""
    names = [path for path in tree.files if path in _RULES or _RULES_BELOW.match(path)]
    said = [one for text in tree.texts(sorted(names)).values() for one in _sentences(text)]
    if not said:
        return
    rules = [one for one in said if _ABOUT.search(one) and (_NEVER.search(one) or _ONLY.search(one))]
    for source in tree.sources:
        if source.is_test or not source.text or source.is_prose:
            continue
        for one in tree.new_imports(source):
            rule = next((text for text in rules if _forbids(text, source.path, one.path)), None)
            if rule is not None:
                text = f"it imports {one.path}, and a document says: {rule[:160]}"
                yield Trouble(
                    "layer", text, source.path, one.line, "Go by the way that the document names, or change the rule first."
                )
                break
        yield from _reading(source, said)


def _sentences(text: str) -> list[str]:
    """Give the sentences and points of a list of a document, each on one line."""
    joined = re.sub(r"\n[ \t]+(?=[^\s*+\-\d])|\n(?=[a-z(`])", " ", text)
    # One that begins with `It` goes on about what the one before it names.
    apart = r"(?<=[.])\s+(?=[A-Z`])(?!(?:It|They|These|Those|This)\b)"
    return [part.strip() for line in joined.split("\n") for part in re.split(apart, line) if part.strip()]


def _is_named(path: str, sentence: str) -> bool:
    """Say whether a sentence names a file: its path, its folder, or its own name between ticks or with its ending."""
    folder, base = posixpath.split(path)
    stem = base.rpartition(".")[0]
    if path in sentence or (
        stem != "__init__"
        and re.search(rf"`(?:[\w.]+[./])?{re.escape(stem)}(?:\.\w+)?/?`|\b{re.escape(stem)}\.(?:py|js|ts|go|rs|java)\b", sentence)
    ):
        return True
    while folder:
        name = posixpath.basename(folder)
        if re.search(rf"(?<![\w/]){re.escape(folder)}(?:/(?![\w])|`)", sentence) or re.search(
            rf"`(?:[\w.]+[./])?{re.escape(name)}/?`", sentence
        ):
            return True
        folder = posixpath.dirname(folder)
    return False


def _forbids(sentence: str, path: str, target: str) -> bool:
    """Say whether a sentence keeps one file from another: it names both and says no, or names the only ones that may."""
    about = _ABOUT.search(sentence)
    if about is None:
        return False
    first, second = _is_named(path, sentence), _is_named(target, sentence)
    subject = _is_named(path, sentence[: about.start()] or sentence)
    if _ONLY.search(sentence) and second and not first:
        return len(re.findall(r"`[^`]+`", sentence)) > 1
    if (
        first
        and subject
        and re.search(
            r"(?i)\bimports? nothing (?:of|from|in) (?:the|this|our)\b|\bdepends? on nothing\b|\bimports? nothing else\b",
            sentence,
        )
    ):
        return True
    if first and subject and not second and _IMPORTS_ONLY.search(sentence):
        return not _is_beside(path, target, sentence)
    if not (first and second and subject) or (
        posixpath.dirname(path) == posixpath.dirname(target) and not _apart(path, target, sentence)
    ):
        return False
    no = _NEVER.search(sentence)
    return no is not None and no.start() < _place(target, sentence)


def _is_beside(path: str, target: str, sentence: str) -> bool:
    """Say whether two files belong to the same part of the project, as far as a sentence tells parts apart."""
    folder = next((one for one in _folders(path) if re.search(rf"\b{re.escape(posixpath.basename(one))}\b", sentence)), "")
    return not folder or target.startswith(f"{folder}/")


def _folders(path: str) -> Iterator[str]:
    while path := posixpath.dirname(path):
        yield path


def _apart(path: str, target: str, sentence: str) -> bool:
    stems = [posixpath.basename(one).rpartition(".")[0] for one in (path, target)]
    return all(re.search(rf"\b{re.escape(stem)}\b", sentence) for stem in stems)


def _place(target: str, sentence: str) -> int:
    words = [target, *target.split("/")[:-1], posixpath.basename(target).rpartition(".")[0]]
    return max((sentence.rfind(word) for word in words), default=0)


def _reading(source: Source, said: list[str]) -> Iterator[Trouble]:
    rule = next((one for one in said if _NO_IO.search(one) and _is_named(source.path, one)), None)
    for line, _ in source.found(_IO) if rule is not None else ():
        if _IO.search(source.rows[line - 1]):
            text = f"it reads or writes, and a document says: {(rule or '')[:160]}"
            yield Trouble("layer", text, source.path, line, "Have it done by a caller, or change the rule first.")
            return
