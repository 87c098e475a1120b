"""What stands above or within a function for its readers, and is no longer true of it."""

import re
from collections.abc import Iterator

from decklog.review.rules.languages import suffix_of
from decklog.review.rules.source import Source
from decklog.review.structure.signatures import Declared, declared
from decklog.review.structure.tokens import is_code, meaning
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import Tree, documents
from decklog.review.structure.untested import SAME

_REMEDY = "Change what it says of itself too."
# What a document calls by another word than the code does; the beginnings of words.
_ALSO = {
    "sorted": ("sort", "order", "alphabet", "ascend"),
    "sort": ("sort", "order", "alphabet", "ascend"),
    "reversed": ("revers", "newest", "latest", "descend"),
    "reverse": ("revers", "newest", "latest", "descend"),
    "strip": ("strip", "trim"),
    "trim": ("strip", "trim"),
    "lower": ("lower", "case-insens", "ignores case"),
    "upper": ("upper", "capital"),
    "set": ("unique", "distinct", "duplicate", "once"),
    "copy": ("copy", "copies"),
    "deepcopy": ("copy", "copies"),
    "round": ("round",),
    "floor": ("round", "floor"),
    "ceil": ("round", "ceil"),
    "abs": ("absolute",),
    "escape": ("escap",),
    "quote": ("quot",),
    "flush": ("flush",),
    "fsync": ("disk", "sync"),
    "encrypt": ("encrypt",),
    "hash": ("hash",),
    "dedupe": ("duplicate", "unique"),
}
_OPPOSITE = (
    ("newest", "oldest"),
    ("newest", "chronolog"),
    ("ascending", "descending"),
    ("first", "last"),
    ("upper", "lower"),
    ("inclusive", "exclusive"),
    ("including", "excluding"),
    ("minimum", "maximum"),
    ("largest", "smallest"),
    ("always", "never"),
    ("required", "optional"),
    ("enabled", "disabled"),
    ("sync", "async"),
    ("seconds", "milliseconds"),
    ("seconds", "minutes"),
    ("bytes", "characters"),
    ("left", "right"),
    ("start", "end"),
    ("returns none", "raise"),
    ("return none", "raise"),
    ("null", "throw"),
    ("keeps", "removes"),
    ("keep", "remove"),
    ("ignore", "raise"),
    ("skip", "raise"),
    ("ignores", "rejects"),
    ("public", "private"),
    ("local", "utc"),
    ("utc", "local"),
    ("celsius", "fahrenheit"),
    ("cents", "euros"),
    ("net", "gross"),
    ("case-sensitive", "case-insensitive"),
    ("relative", "absolute"),
    ("population", "sample"),
    ("up", "down"),
    ("before", "after"),
    ("allow", "refuse"),
    ("allow", "reject"),
    ("accept", "reject"),
    ("overwrite", "keep"),
    ("append", "replace"),
    ("list", "iterator"),
    ("list", "generator"),
    ("lazily", "eagerly"),
    ("empty", "none"),
    ("empty", "raise"),
)


def stale_comments(tree: Tree) -> Iterator[Trouble]:
    """Find functions that do something else now and still say what they did."""
    title = tree.change.message.partition("\n")[0].lower()
    for source in tree.sources:
        if source.is_test or not is_code(source.path) or not source.before:
            continue
        before = {(one.owner, one.name): one for one in declared(source.before, source.suffix)}
        for new in declared(source.text, source.suffix):
            old = before.get((new.owner, new.name))
            if old is None or (old.body == new.body and _given(old) == _given(new)):
                continue
            why = _untrue(source, old, new, title)
            if why:
                yield Trouble("stale-document", why, source.path, new.line, _REMEDY)
            elif new.name and len(new.name) > 3:
                yield from _of_documents(tree, source, old, new)


def _given(one: Declared) -> list[str]:
    return [parameter.name for parameter in one.parameters]


def _untrue(source: Source, old: Declared, new: Declared, title: str) -> str:
    """Say what the words of a function promise that it does not do any more; nothing where they are true, or were changed."""
    doc = new.doc
    for name in dict.fromkeys(_given(old)):
        if name and name not in _given(new) and _describes(doc, name):
            return f"the parameter {name} is gone, and is still described"
    if not doc or doc != old.doc:
        return ""
    if meaning(old.body, source.path) == meaning(new.body, source.path) and suffix_of(source.path) != ".py":
        return ""
    if error := _no_longer_raised(old, new, doc):
        return f"it says that it raises {error}, and does so no more where it did"
    if error := _no_longer_missed(old, new, doc):
        return f"it says that it raises {error}, and what is not there is nothing now"
    if lost := _lost_name(old, new, doc):
        return f"it still speaks of {lost}, which it has no more"
    if lost := _lost_call(old, new, doc):
        return f"it still says what `{lost}` did, which is gone"
    if lost := _lost_value(old, new, doc):
        return f"it still says {lost}, which it does not give any more"
    if not SAME.search(title) and (lost := _lost_word(old, new, doc)):
        return f"it still speaks of `{lost}`, which is gone"
    return _contradicted(doc, title, new)


def _describes(doc: str, name: str) -> bool:
    """Say whether the words of a function describe a parameter, by any of the forms that are usual."""
    word = re.escape(name)
    if re.search(rf":param\s+(?:\w+\s+)?{word}\b|@param\s+(?:\{{[^}}]*\}}\s*)?\[?\$?{word}\b", doc):
        return True
    listed = re.search(r"(?m)^\s*(?:Args|Arguments|Parameters)\s*:?\s*$([\s\S]*)", doc)
    return listed is not None and re.search(rf"(?m)^\s*[-*]?\s*`?{word}`?\s*(?:\([^)]*\))?\s*:", listed[1]) is not None


def _bodies(one: Declared) -> str:
    """Give the code of a function without its own words."""
    return one.body.replace(one.doc, "") if one.doc else one.body


def _no_longer_raised(old: Declared, new: Declared, doc: str) -> str:
    form = (
        r"(?:raise|throw(?:\s+new)?|return\s+(?:fmt\.Errorf|errors\.New|Err)|panic!?)\b[^\n]*?(?P<error>[A-Z]\w+"
        r"|Errorf|New|Err)?\s*\((?P<text>[^\n]*)"
    )
    kept = {one[0] for one in re.finditer(form, _bodies(new))}
    plain = doc.lower()
    for one in re.finditer(form, _bodies(old)):
        if one[0] in kept:
            continue
        error = one["error"] or "an error"
        words = set(re.findall(r"[a-z]{4,}", one["text"].lower()))
        said = error in doc or re.search(r"\b(?:raise|throw|error|panic|fail|refuse|reject)", plain) is not None
        has_error = any((other["error"] or "an error") == error for other in re.finditer(form, _bodies(new)))
        if said and error in doc and (not has_error or any(word in plain for word in words)) and not _calls_more(old, new):
            return error
    return ""


def _no_longer_missed(old: Declared, new: Declared, doc: str) -> str:
    """Find an error of looking something up that is promised, where the look has become one that does not fail."""
    error = re.search(r"\b(?:KeyError|IndexError|LookupError)\b", doc)
    looks = [re.search(r"[\w)]\[[^\]:]+\]", _bodies(one)) is not None for one in (old, new)]
    is_soft = ".get(" in _bodies(new) and ".get(" not in _bodies(old)
    return error[0] if error is not None and looks == [True, False] and is_soft and "raise" not in _bodies(new) else ""


def _lost_name(old: Declared, new: Declared, doc: str) -> str:
    """Find a name that the words of a function have as the code spells it, which the code had and has no more."""
    names = set(re.findall(r"\b(?:Err[A-Z]\w+|[A-Z]\w+(?:Error|Exception)|[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b", doc))
    had, has = (set(re.findall(r"\w+", _bodies(one))) for one in (old, new))
    lost = sorted((names & had) - has)
    return lost[0] if lost and not _calls_more(old, new) else ""


def _calls_more(old: Declared, new: Declared) -> bool:
    """Say whether a function calls something that it did not call before, which may do what it did."""
    calls = [set(re.findall(r"(?<!def )\b([A-Za-z_]\w*)\(", _bodies(one))) for one in (old, new)]
    return bool(calls[1] - calls[0] - {"len", "int", "str", "isinstance", "list", "range", "print"})


def _lost_call(old: Declared, new: Declared, doc: str) -> str:
    names: list[set[str]] = [set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", _bodies(one))) for one in (old, new)]
    plain = doc.lower()
    now = {_short(name) for name in names[1]}
    for name in sorted(names[0] - names[1]):
        short = _short(name)
        words = _ALSO.get(short, ())
        if (
            words
            and short not in now
            and not (set(_ALSO.get(short, ())) & {word for other in now for word in _ALSO.get(other, ())})
            and any(word in plain for word in words)
        ):
            return name
    return ""


def _lost_value(old: Declared, new: Declared, doc: str) -> str:
    """Find a value that was given back, that the words speak of, and that is given back no more."""
    form = re.compile(r"(?m)\breturn\s+(-?\d+(?:\.\d+)?|None|null|nil|True|False|true|false)\s*;?\s*$")
    given: list[set[str]] = [set(form.findall(_bodies(one))) for one in (old, new)]
    for value in sorted(given[0] - given[1]):
        if re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.]\d|\w)", doc):
            return value
    return ""


def _lost_word(old: Declared, new: Declared, doc: str) -> str:
    """Find a name that the code has no more, in no form, and of which the words still speak by a word of its own."""
    names: list[set[str]] = [set(re.findall(r"[A-Za-z_]\w+", _bodies(one))) for one in (old, new)]
    now, plain = _bodies(new).lower(), doc.lower()
    for name in sorted(names[0] - names[1]):
        parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z]{5,}", name)]
        if len(parts) < 2 or any(part[:5] in now for part in parts):
            continue
        if any(re.search(rf"\b{re.escape(part[:5])}", plain) for part in parts):
            return name
    return ""


def _short(name: str) -> str:
    """Give the last word of a name, as methods of different languages share it: `ToLower` and `to_lowercase` are `lower`."""
    plain = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
    parts = [
        part
        for part in plain.split("_")
        if part not in ("to", "case", "string", "space", "spaces", "unstable", "by", "all", "in", "place")
    ]
    last = parts[0] if parts else plain
    return {"lowercase": "lower", "uppercase": "upper", "trimmed": "trim", "sorting": "sort", "ascii": "lower"}.get(last, last)


def _contradicted(doc: str, title: str, new: Declared) -> str:
    plain = doc.lower()
    for first, second in _OPPOSITE:
        for said, kept in ((first, second), (second, first)):
            if _has(said, title) and _has(kept, plain) and not _has(said, plain) and not _has(kept, title):
                return f"the message says {said!r}, and what stands above {new.name} still says {kept!r}"
    return ""


def _has(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}", text) is not None


def _of_documents(tree: Tree, source: Source, old: Declared, new: Declared) -> Iterator[Trouble]:
    """Find documents that name a function together with an error which it does not raise any more."""
    if source.suffix != ".py":
        return
    errors = [set(re.findall(r"\braise\s+(\w+)", _bodies(one))) for one in (old, new)]
    texts = [re.findall(r"\braise\s+(\w+)\((.*)", _bodies(one)) for one in (old, new)]
    gone = {error: text for error, text in texts[0] if (error, text) not in texts[1]}
    if not gone or _calls_more(old, new):
        return
    for path, text in documents(tree, [new.name]).items():
        for part in re.split(r"\n\s*\n|\n(?=[-*|])", text):
            if re.search(rf"\b{re.escape(new.name)}\b", part):
                for error, said in gone.items():
                    words = set(re.findall(r"[a-z]{4,}", said.lower()))
                    is_meant = error in part and (error not in errors[1] or any(word in part.lower() for word in words))
                    line = text.count("\n", 0, text.index(part)) + 1
                    known = tree.changed.get(path)
                    if is_meant and not (known is not None and known.before != known.text):
                        yield Trouble(
                            "stale-document",
                            f"{new.name} no longer raises {error} where it did, and this says so",
                            path,
                            line,
                            _REMEDY,
                        )
                        return
