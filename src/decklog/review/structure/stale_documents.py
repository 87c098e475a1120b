"""Documents that a change makes untrue: names that are gone from the code, values that are others now."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from decklog.review.rules.blanking import blanked
from decklog.review.rules.languages import suffix_of
from decklog.review.rules.rule import SETTINGS, SHELLS
from decklog.review.rules.source import Source
from decklog.review.structure.removed_names import names_of
from decklog.review.structure.tokens import is_code, is_run, replaced
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import PROSE, Tree, documents, is_history

_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9]*(?:-[a-z0-9]+)*(?![\w-])")
_SHORT_FLAG = re.compile(r"\bflag\.(?:\w+Var\(\s*&?\w+\s*,\s*|\w+\(\s*)\"(?P<name>[\w-]+)\"")
_LONG_FLAG = re.compile(r"\.(?:long|option|Flags\(\)\.\w+)\(\s*\"(?P<name>[a-z][\w-]+)\"")
_CASE = re.compile(r"(?m)^[ \t]*(?:-[\w-]+[ \t]*\|[ \t]*)*--[\w-]+(?:=\*)?(?:[ \t]*\|[ \t]*-[\w=*-]+)*\)")
_VARIABLE = re.compile(r"(?<![\w$])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?!\w)")
_ROUTE = re.compile(r"[\"'`](?P<name>/[a-z][\w{}:<>.-]*(?:/[\w{}:<>.-]+)*)/?[\"'`]")
_KEY = re.compile(r"[\"'](?P<name>\.?[A-Za-z][\w-]*(?:\.[\w-]+)*)[\"']")
_PAST = re.compile(
    r"(?i)\b(?:was|were|formerly|renamed|removed|deprecated|before|old|older|no longer"
    r"|instead of|used to|previously|until|legacy)\b"
)
_PYTHON_NAME = re.compile(r"(?m)^(?:async\s+)?(?:def|class)\s+(?P<name>[A-Za-z]\w*)")
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SERVING = {"port", "liste", "expos", "serve", "addr", "addre", "bind"}
_REMEDY = "Change the document too."
_MOST = 200
_MOST_SAYING = 4
_MANIFESTS = ("pyproject.toml", "package.json", "Cargo.toml", "setup.cfg", "composer.json")


def stale_documents(tree: Tree) -> Iterator[Trouble]:
    """Find documents that still speak of what was."""
    yield from _names(tree)
    yield from _values(tree)
    yield from _packages(tree)


# Names


def _offered(text: str, path: str) -> dict[str, str]:
    """Give the names by which users reach what a file offers, each with its kind."""
    suffix = suffix_of(path)
    code = blanked(text, suffix or path.rpartition("/")[2].lower()).code
    found = {name: "key" for one in _KEY.finditer(code) if len(name := one["name"]) > 2} if is_code(path) else {}
    if is_code(path):
        found |= dict.fromkeys(
            (one["name"] for one in _PYTHON_NAME.finditer(code))
            if suffix == ".py"
            else (name for _, name in names_of(text, suffix)),
            "function",
        )
        found |= {one["name"]: "route" for one in _ROUTE.finditer(code)}
        found |= {"-" + one["name"]: "flag" for one in _SHORT_FLAG.finditer(code)}
        found |= {"--" + one["name"]: "flag" for one in _LONG_FLAG.finditer(code)}
    found |= dict.fromkeys(_VARIABLE.findall(code), "variable")
    return found | dict.fromkeys(_flags(code, suffix), "flag")


def _flags(code: str, suffix: str) -> list[str]:
    """Give the options of a program; of a script that has cases for them those alone, since the rest is what it says."""
    cases = [flag for one in _CASE.finditer(code) for flag in _FLAG.findall(one[0])] if suffix in SHELLS else []
    return cases or _FLAG.findall(code)


def _names(tree: Tree) -> Iterator[Trouble]:
    changed = [one for one in tree.sources if is_run(one.path) and not one.is_test]
    kept = {name for one in changed for name in _offered(one.text, one.path)}
    gone = {
        name: kind for one in changed if one.before for name, kind in _offered(one.before, one.path).items() if name not in kept
    }
    gone = dict(list(gone.items())[:_MOST])
    texts = tree.naming(gone)
    code = {path: text for path, text in texts.items() if is_code(path) and not tree.is_test(path)}
    for name, kind in gone.items():
        word = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
        own = {one.path for one in changed if suffix_of(one.path) in SHELLS and kind == "flag"}
        if any(
            name in text and word.search(blanked(text, suffix_of(path)).code) for path, text in code.items() if path not in own
        ):
            continue
        yield from _told_of(tree, name, kind, texts)


def _told_of(tree: Tree, name: str, kind: str, texts: Mapping[str, str]) -> Iterator[Trouble]:
    for path, text in texts.items():
        if name not in text or is_history(path) or tree.is_test(path):
            continue
        is_prose = suffix_of(path) in PROSE
        is_user = kind in ("variable", "route", "flag") and (
            suffix_of(path) in (*SETTINGS, *SHELLS) or path.rpartition("/")[2].lower().startswith(("dockerfile", "makefile"))
        )
        if not is_prose and not is_user:
            continue
        line = _line_naming(text, name, kind, is_prose=is_prose)
        known = tree.changed.get(path)
        if line is not None and not (known is not None and line in known.added):
            yield Trouble("stale-document", f"{name} is gone from the code, and is still spoken of here", path, line, _REMEDY)


def _line_naming(text: str, name: str, kind: str, *, is_prose: bool) -> int | None:
    """Give the line where a document speaks of a name as something to use."""
    word = re.escape(name)
    plain = re.compile(rf"(?<![\w/.-]){word}(?![\w-]|/\w)" if kind in ("flag", "route") else rf"(?<!\w){word}(?!\w)")
    shown = re.compile(rf"(?<![\w/.-]){word}\s*(?:=|:|\()|\bimport\b.*(?<!\w){word}(?!\w)|\b{word}\b\s+[-\w/]")
    is_fenced = False
    for number, row in enumerate(text.split("\n"), 1):
        if row.lstrip().startswith(("```", "~~~")):
            is_fenced = not is_fenced
            continue
        if name not in row or _PAST.search(row):
            continue
        if kind in ("flag", "variable", "route"):
            if plain.search(row) and (
                kind != "route"
                or not is_prose
                or "`" in row
                or is_fenced
                or row.startswith("    ")
                or re.search(rf"\b[A-Z]{{3,6}}\s+{word}", row)
            ):
                return number
        elif any(
            plain.search(span) and (span == name or span.startswith(f"{name}(") or (" " in span.strip() and kind == "key"))
            for span in re.findall(r"`([^`\n]+)`", row)
        ) or ((is_fenced or row.startswith(("    ", "\t"))) and shown.search(row)):
            return number
    return None


def _packages(tree: Tree) -> Iterator[Trouble]:
    """Find documents that have a package installed by a name that it had."""
    for source in tree.sources:
        old, new = (re.search(r"(?m)^\s*\"?name\"?\s*[=:]\s*[\"']([^\"']+)", text) for text in (source.before, source.text))
        if source.name not in _MANIFESTS or old is None or new is None or old[1] == new[1]:
            continue
        form = re.compile(
            rf"\b(?:pipx?|npm|yarn|pnpm|cargo|brew|gem|uv|uvx|poetry|go|composer)\b[^\n`]*\s{re.escape(old[1])}(?![\w-])"
        )
        for path, text in documents(tree, [old[1]]).items():
            if (found := form.search(text)) is not None:
                line = text.count("\n", 0, found.start()) + 1
                yield Trouble("stale-document", f"the package is called {new[1]} now", path, line, _REMEDY)


# Values


def _values(tree: Tree) -> Iterator[Trouble]:
    changed = [one for one in tree.sources if is_run(one.path) and not one.is_test]
    found = [(one, value) for source in changed for one in replaced(source) for value in one.values]
    if not found:
        return
    names = {path for path in tree.files if suffix_of(path) in PROSE and not is_history(path) and not tree.is_test(path)}
    texts = tree.texts(sorted(names, key=lambda path: (path.count("/"), path))[:_MOST])
    said = {path: list(enumerate(text.split("\n"), 1)) for path, text in texts.items()}
    title = {_stem(word) for word in re.findall(r"[a-z]{4,}", tree.change.message.partition("\n")[0].lower())}
    seen: set[tuple[str, int]] = set()
    for line, (old, new, named) in found:
        source = tree.changed[line.path]
        words = _words(f"{named} {_around(source, line.line)}")
        if not words or old.lower() in ("true", "false", "0", "none", "null"):
            continue
        told = [
            (path, _line_with(rows, old, new, words | title, path != source.path))
            for path, rows in (*said.items(), (source.path, list(_notes(source))))
        ]
        if sum(number is not None for _, number in told) > _MOST_SAYING:
            continue  # so many do not speak of this one: the number, or the word, is common
        for path, number in told:
            known = tree.changed.get(path)
            # A line that the change wrote is its author's word; but for the one that has the value and its help.
            is_old = known is None or number not in known.added or (path, number) == (line.path, line.line)
            if number is not None and (path, number) not in seen and is_old:
                seen.add((path, number))
                text = f"{named.partition(' ')[0]} is {new} now, and this still says {old}"
                yield Trouble("stale-document", text, path, number, _REMEDY)


def _around(source: Source, line: int) -> str:
    """Name the function that a line begins, which a document may speak of instead of its parameter."""
    found = re.search(r"(?:def|func|fn|function|fun)\s+(\w+)", source.rows[line - 1])
    return found[1] if found is not None else ""


def _words(text: str) -> set[str]:
    """Give the beginnings of the words that a name is put together of."""
    plain = re.sub(r"([a-z])([A-Z])", r"\1 \2", text).replace("_", " ").lower()
    return {_stem(word) for word in re.findall(r"[a-z]{3,}", plain)} - {
        "defa",
        "max",
        "min",
        "num",
        "the",
        "for",
        "with",
        "self",
        "args",
    }


def _stem(word: str) -> str:
    short = re.sub(r"(?:ies|es|s|ing|ed)$", "", word)
    return (short if len(short) >= 3 else word)[:5]


def _line_with(said: Iterable[tuple[int, str]], old: str, new: str, words: set[str], is_document: bool) -> int | None:
    """Find the line that has the old value with one of the words of its name, and not the new value."""
    values, fresh = _spelled(old), _spelled(new)
    rows = list(said)
    for place, (number, row) in enumerate(rows):
        if not _has_any(values, row):
            continue
        near = (
            " ".join(text for _, text in rows[max(0, place - 1) : place + 2] if text.strip())
            if not row.lstrip().startswith(("|", "-", "*"))
            else row
        )
        told = {
            _stem(word) for word in re.findall(r"[a-z]{3,}", re.sub(r"([a-z])([A-Z])", r"\1 \2", near).replace("_", " ").lower())
        }
        if _PAST.search(row) or (old[0].isdigit() and _has_any(fresh, row)):
            continue
        is_said = old[0].isdigit() or re.search(
            rf"(?i)default\W+(?:is\W+|of\W+|to\W+)?{re.escape(old)}\b|`{re.escape(old)}`", row
        )
        is_plain = old not in ("1", "2") or "default" in row.lower() or (is_document and "`" in row)
        is_port = (
            re.search(rf"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|:|\bports?\W+){re.escape(old)}\b", row) is not None and len(old) > 3
        )
        if (words & told or (is_port and words & _SERVING)) and is_said and is_plain:
            return number
    return None


def _spelled(value: str) -> list[str]:
    """Give a value as documents write it: `10.0` is ten, and so is 10."""
    plain = re.sub(r"\.0+$", "", value)
    worded = [_NUMBERS[int(plain)]] if plain.isdigit() and int(plain) < len(_NUMBERS) else []
    return [*dict.fromkeys((value, plain)), *worded]


def _has_any(values: list[str], row: str) -> bool:
    return any(re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)", row, re.IGNORECASE) for value in values)


def _notes(source: Source) -> Iterator[tuple[int, str]]:
    """Give the comments, documents and words of help of a file, each with its line."""
    for place, note in source.blanked.notes:
        for offset, row in enumerate(note.split("\n")):
            yield source.line_at(place) + offset, row
    for number, row in enumerate(source.rows, 1):
        if re.search(r"(?i)\bhelp\s*[=:]|\busage\b|\bdefault\b.*[\"'`]\s*[,)]", row):
            yield number, re.sub(r"\bdefault\s*=\s*[^,)]*", "", row)
    for node in ast.walk(source.tree) if source.tree is not None else ():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for offset, row in enumerate(node.value.value.split("\n")):
                yield node.lineno + offset, row
