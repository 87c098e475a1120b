"""Files, functions, numbers and dependencies that the message of a change names, and what the change does of them."""

import re
from collections.abc import Callable, Iterator

from decklog.review.rules.languages import suffix_of
from decklog.review.structure.signatures import declared
from decklog.review.structure.tokens import is_code, replaced
from decklog.review.structure.tree import PROSE, Tree


def _places(tree: Tree, title: str) -> Iterator[str]:
    for found in re.finditer(
        (
            r"(?i)\b(?P<how>in|of|to|from|update|fix|mend|change|edit|rewrite|for)\s+(?:the\s+)?[`'\"]?(?P<path>[\w./-]*\w\.(?:py"
            r"|js|jsx|ts|tsx|go|rs|java|kt|rb|php|c|cpp|h|cs|sh|sql|yml|yaml|toml|json"
            r"|md|rst|css|html|swift|scala))\b"
        ),
        title,
    ):
        path = found["path"]
        known = [one for one in tree.files if one == path or one.endswith("/" + path)]
        changed = {one.path for one in tree.change.paths}
        if found["how"].lower() == "from" or not known or path in tree.added_text or path in tree.gone_text:
            continue
        if not any(one in changed for one in known):
            yield f"the message speaks of {path}, which the change does not touch"


_NAME = r"[`'\"]?(?P<name>--[a-z][\w-]+|[A-Za-z_]\w*(?:\.\w+)*(?:\(\))?)[`'\"]?"


def _looks_like_code(name: str, quoted: bool) -> bool:
    return (
        quoted
        or "_" in name.strip("_")
        or name.startswith("--")
        or re.search(r"[a-z][A-Z]", name) is not None
        or name.endswith("()")
        or re.search(r"\w\.\w", name) is not None
    )


def _named(tree: Tree, title: str) -> Iterator[str]:
    found = re.match(
        rf"(?i)(?:\w+(?:\([^)]*\))?:\s*)?(?P<verb>add|introduce|implement|remove|delete|drop)\w*\s+(?:the\s+|a\s+|an\s+)?(?:(?:function|method|class|option|flag|setting|command|field|parameter|helper)\s+)?{_NAME}",
        title,
    )
    if found is None:
        return
    start = found.start("name")
    name, is_quoted = found["name"].removesuffix("()"), title[start - 1 : start] in ("`", "'", '"')
    if not _looks_like_code(found["name"], is_quoted):
        return
    last = name.rpartition(".")[2] if not name.startswith("--") else name.removeprefix("--")
    word = re.compile(
        rf"(?i)(?<![A-Za-z0-9]){re.escape(last)}(?![A-Za-z0-9])" if not name.startswith("--") else rf"(?i)\b{re.escape(last)}\b"
    )
    paths = " ".join(one.path for one in tree.change.paths)
    loosely = re.sub(r"[-_]", "", last).lower()
    is_adding = found["verb"].lower() in ("add", "introduce", "implement")
    text = tree.added_text if is_adding else tree.gone_text
    if not word.search(text) and not word.search(paths) and loosely not in re.sub(r"[-_]", "", text).lower():
        yield f"the message says {found[0]!r}, and no {'new' if is_adding else 'old'} line has {last}"
    elif not is_adding and _is_kept(tree, last):
        yield f"the message says {found[0]!r}, and {last} is still there"


def _is_kept(tree: Tree, name: str) -> bool:
    """Say whether every file of the change that declared a name still does."""
    before = [one for one in tree.sources if any(found.name == name for found in declared(one.before, one.suffix))]
    return bool(before) and all(any(found.name == name for found in declared(one.text, one.suffix)) for one in before)


_UNITS = r"(?:\s*(?:%|percent|ms|s|seconds?|minutes?|hours?|days?|[kmg]i?b|bytes?|rows?|times))?"


def _numbers(tree: Tree, title: str) -> Iterator[str]:
    """Find numbers that the first line says something is set to, and that no new line has."""
    for found in re.finditer(
        r"(?i)\b(?:to|port|python|node(?:\.js)?|ruby|java|go|php|version|at most|every|after|limit of|of)\s+(?:version\s+|v)?"
        rf"(?P<number>\d+(?:\.\d+)*)\b(?!\s*(?:of|files?|places?|tests?|callers?|functions?|modules?)\b){_UNITS}",
        title,
    ):
        number = found["number"]
        if (len(number) == 1 and "." not in number) or re.search(rf"#\s*{number}|\b[A-Z]+-{number}", title):
            continue
        plain = re.sub(r"(?<=\d)[_,](?=\d)", "", tree.added_text + "\n" + "\n".join(one.path for one in tree.change.paths))
        digits = number.replace(".", r"[._]?") if "." in number else number
        has = re.search(rf"(?<![\d.]){digits}(?!\d)", plain) or (
            found["number"].isdigit() and re.search(rf"(?<!\d){number}0{{3,}}\b", plain)
        )
        is_product = number.isdigit() and any(
            int(number) and int(one) % int(number) == 0 and int(one) // int(number) in (60, 3600, 1000, 1024, 100, 24)
            for one in re.findall(r"(?<![\d.])\d{2,9}(?![\d.])", plain)
        )
        if (
            not has
            and not is_product
            and tree.change.added
            and not all(suffix_of(one.path) in PROSE for one in tree.change.paths)
        ):
            yield f"the message says {found[0].strip()!r}, and no new line has {number}"
            return


def _bumped(tree: Tree, title: str) -> Iterator[str]:
    """Find a dependency that the message says is another one now, and that is not."""
    found = re.match(
        r"(?i)(?:\w+(?:\([^)]*\))?:\s*)?(?:(?:bump|upgrade|update)\s+)?(?:the\s+)?[`'\"]?(?P<name>@?[a-z][\w./@-]*)[`'\"]?(?:\s+(?:from\s+v?[\d.]+\s+)?(?:to\s+)?v?(?P<version>\d+\.\d+(?:\.\d+)*))?\s*$",
        title,
    )
    if (
        found is None
        or not any(_is_manifest(one.path) for one in tree.change.paths)
        or (found["version"] is None and not re.search(r"(?i)\b(?:bump|upgrade)\b", title))
    ):
        return
    name = found["name"].rpartition("/")[2].lower()
    if name in (
        "version",
        "versions",
        "release",
        "dependencies",
        "deps",
        "requirements",
        "python",
        "node",
        "chart",
        "lock",
        "lockfile",
    ):
        return
    changed = [line.text for one in tree.sources for line in one.lines]
    gone = {line.text.strip() for one in tree.sources for line in one.lines if line.sign == "-"}
    rows = [row for row in changed if name in row.lower() and not (found["version"] and row.strip() in gone)]
    pairs = _moved(tree, name)
    if not any(name in row.lower() for row in changed) or (pairs is False):
        yield f"the message says {title!r}, and {name} is what it was"
    elif found["version"] and rows and not any(found["version"] in row for row in changed):
        yield f"the message says {found['version']}, and no new line does"


def _is_manifest(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name in (
        "package.json",
        "pyproject.toml",
        "Cargo.toml",
        "go.mod",
        "Gemfile",
        "pom.xml",
        "setup.py",
        "setup.cfg",
        "composer.json",
        "build.gradle",
        "build.gradle.kts",
    ) or name.startswith("requirements")


def _moved(tree: Tree, name: str) -> bool | None:
    """Say whether what is said after a name differs before and after; None where the name is on no line of both."""
    form = re.compile(rf"(?i)[\"']?(?<![\w-]){re.escape(name)}(?![\w-])[\"']?\s*(?:[=<>~!^:@ ]+)\s*[\"'v]?(?P<to>[\w.^~<>=*-]+)")
    found = [(form.search(one.before), form.search(one.text)) for one in tree.sources if _is_manifest(one.path)]
    both = [(old["to"], new["to"]) for old, new in found if old is not None and new is not None]
    return any(old != new for old, new in both) if both else None


def _functions(tree: Tree, title: str) -> Iterator[str]:
    """Find functions that the first line names and whose lines the change leaves as they are, in a file that it touches."""
    for found in re.finditer(r"`?\b(?P<name>[A-Za-z_]\w*)\(\)`?", title):
        name = found["name"]
        word = re.compile(rf"\b{re.escape(name)}\b")
        if word.search(tree.added_text) or word.search(tree.gone_text):
            continue
        spans = [
            (one, had) for one in tree.sources if is_code(one.path) for had in declared(one.text, one.suffix) if had.name == name
        ]
        if not any(is_code(one.path) for one in tree.change.paths):
            if not _OF_WORDS.search(title) and _is_somewhere(tree, name):
                yield f"the message speaks of {name}, and no code changes"
            continue
        if spans and not any(one.is_new(had.line, had.last) or not one.added for one, had in spans):
            yield f"the message speaks of {name}, of which no line changes"


_OF_WORDS = re.compile(
    r"(?i)\b(?:docs?|document\w*|describ\w*|explain\w*|mention\w*|readme|comment\w*|typos?|examples?|spell\w*|changelog"
    r"|note|say|tell|list|link)\b"
)


def _is_somewhere(tree: Tree, name: str) -> bool:
    return any(found.name == name for path, text in tree.naming([name]).items() for found in declared(text, suffix_of(path)))


def _removing(tree: Tree, title: str) -> Iterator[str]:
    """Find a change that says it takes something out, and only has other values where the old ones were."""
    if not re.match(r"(?i)(?:\w+(?:\([^)]*\))?:\s*)?(?:remove|delete|drop|get rid of|strip out)\b", title) or not tree.sources:
        return
    # What the program takes away from now on is no line that goes.
    if re.search(r"(?i)\b(?:when|if|after|once|unless|before|on|older|while|every|upon|from)\b", title):
        return
    gone = sum(line.sign == "-" for one in tree.sources for line in one.lines)
    swapped = [line for one in tree.sources for line in replaced(one)]
    is_swap = gone == len(swapped) == len(tree.change.added) and not any(
        value[0][0].isalpha() for line in swapped for value in line.values
    )
    if all(one.status == "M" for one in tree.change.paths) and (gone == 0 or is_swap):
        yield f"the message says {title[:60]!r}, and nothing is taken out"


_DEPENDENCIES = re.compile(
    r"(?i)(?:\w+(?:\([^)]*\))?:\s*)?(?:update|bump|upgrade|refresh)\w*\s+(?:the\s+|all\s+)?"
    r"(?:dependenc\w+|deps|requirements|lock ?files?)\b"
)


def _dependencies(tree: Tree, title: str) -> Iterator[str]:
    names = " ".join(one.path for one in tree.change.paths)
    is_changed = any(_is_manifest(one.path) for one in tree.change.paths)
    if (
        _DEPENDENCIES.match(title)
        and not is_changed
        and not re.search(r"(?i)lock|\.sum\b|requirements|deps|dependenc|workflows|renovate", names)
    ):
        yield f"the message says {title[:60]!r}, and no dependency changes"


NAMED: tuple[Callable[[Tree, str], Iterator[str]], ...] = (
    *(_places, _named, _numbers, _bumped, _functions, _removing, _dependencies),
)
