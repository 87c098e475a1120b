"""What the message of a change claims and the change does not do."""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator

from decklog.review.rules.languages import suffix_of
from decklog.review.rules.source import Source
from decklog.review.structure.signatures import declared
from decklog.review.structure.tokens import is_code, is_run, meaning, parts
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import PROSE, Tree

_REMEDY = "Say what the change does, or have it do what it says."
_NOT_YET = (
    r"(?i)\b(?:no|without|not?|lacks?|needs?|missing|follow\w*|later|next|todo"
    r"|untested|remove[sd]?|delete[sd]?|drop\w*|skip\w*)\b"
)
_TESTS = re.compile(
    r"(?i)\b(?:add(?:s|ed|ing)?|with|includ\w+|extend\w*|write|writes|wrote|new"
    r"|more|cover\w*\b[^.\n]{0,40}\b(?:by|with)|covered by|tested (?:by|with)"
    r"|and)\s+(?:(?:a|an|the|some|its|unit|regression|new|more|integration|few"
    r"|several|two|three|edge-case)\s+){0,3}tests?\b(?!\s+(?:data|fixture|runner"
    r"|suite|command|harness|environment|server|client|mode|key|account|page))"
)
_DOCUMENTS = (
    (
        re.compile(
            (
                r"(?i)\b(?:updat|add|mention|describ|document|not|extend|record)\w*\b[^.;\n]{0,40}\bchange ?log\b"
                r"|\bchange ?log (?:is |was |has been |entry )?(?:updated|added|extended|entry)"
            )
        ),
        re.compile(r"(?i)change|history|news|release"),
        "changelog",
    ),
    (
        re.compile(
            r"(?i)\b(?:updat|add|mention|describ|document|explain|extend)\w*\b[^.;\n]{0,40}\breadme\b"
            r"|\breadme (?:is |was |has been )?(?:updated|extended)"
        ),
        re.compile(r"(?i)readme"),
        "README",
    ),
    (
        re.compile(
            r"(?i)\b(?:updat|extend|adjust|adapt)\w*\s+(?:the\s+|its\s+)?(?:docs|documentation"
            r"|manual|guide)\b|\b(?:docs|documentation) (?:is |was |are |were |has been "
            r"|have been )?(?:updated|extended)|(?:,|;|\band\b)\s*documents? it\b"
        ),
        re.compile(r"(?i)\.(?:md|rst|adoc|txt|html)$|(?:^|/)docs?/"),
        "documents",
    ),
)
_NO_CHANGE = (
    r"\bno (?:functional|behaviou?r\w*|semantic|code|logic)\s*(?:change|difference)s?"
    r"|\bbehaviou?r\s+(?:is |stays |remains |was )?(?:the same|unchanged|identical"
    r"|as before)|\bwithout (?:any )?(?:functional|behaviou?r\w*) changes?|\bnon-functional\b"
    r"|\bpure(?:ly)? (?:a )?refactor\w*|\bdoes (?:exactly )?the same\b"
)
_FORMAT = (
    r"\b(?:only|just|pure(?:ly)?)\s+(?:re-?)?(?:format\w*|white ?space|indent\w*"
    r"|style|cosmetic)|\b(?:format\w*|white ?space|indentation|style|cosmetic)\s+(?:only"
    r"|changes? only)|^(?:style|format)(?:\([^)]*\))?:|\b(?:run|ran|apply|applied"
    r"|re-?run)\s+(?:\w+\s+)?(?:black|prettier|gofmt|rustfmt|isort|ruff format"
    r"|clang-format|the formatter|formatter|eslint --fix|shfmt)|^(?:re-?format"
    r"|re-?indent|fix (?:the )?(?:format\w*|indent\w*|white ?space))\b|^formatting\b"
    r"|^white ?space\b"
)
_NOTES = (
    r"^docs?(?:\([^)]*\))?:|^(?:improve|fix|update|add|clarify|reword|correct"
    r"|extend|polish)\w*\s+(?:the\s+|a\s+|some\s+)?(?:\w+\s+)?(?:comments?|docs?"
    r"|docstrings?|documentation|readme)\b(?!.*\b(?:and|also|;))|\b(?:docs?|comments?"
    r"|documentation|docstrings?)\s+only\b|\bonly (?:the )?(?:docs?|comments?"
    r"|documentation|docstrings?)\b|^comments?\b|^documentation\b|^readme\b"
)
_TYPO = r"\btypos?\b|\bspelling\b|\bmisspell\w*"
_TYPES = (
    r"^(?:add|improve|fix|complete)\w*\s+(?:the\s+|some\s+|missing\s+|more\s+)?(?:type (?:hints?"
    r"|annotations?)|typing|annotations?|types)\b(?!.*\b(?:and|also)\b)"
)
_IMPORTS = (
    r"^(?:sort|tidy|clean(?: up)?|organi[sz]e|order|reorder|remove unused)\w*\s+(?:the\s+"
    r"|unused\s+)?imports?\b(?!.*\b(?:and|also)\b)"
)
_LOGS = r"^(?:log(?!:)|add (?:more |some )?log(?:s|ging)?|improve (?:the )?logging)\b(?!.*\b(?:and|instead|level|when|if)\b)"
_ONLY_TESTS = (
    r"^tests?(?:\([^)]*\))?:|^(?:only )?(?:adds?|write|extend|improve)\s+(?:only\s+)?(?:a "
    r"|an |some |more |the |missing |unit |regression |new )*tests?\b(?!.*\b(?:and"
    r"|also|fix|,))|\btests? only\b|\bonly (?:adds? )?(?:a )?tests?\b"
)


def claims(tree: Tree) -> Iterator[Trouble]:
    """Find claims that the change itself contradicts."""
    message = tree.change.message
    if not message or re.match(r"(?i)merge |revert ", message):
        return
    title = message.partition("\n")[0]
    for look in (_tests, _documents, _sameness, _renaming, _places, _named, _numbers, _bumped):
        for text in look(tree, title):
            yield Trouble("claim", text, None, None, _REMEDY)


def _tests(tree: Tree, title: str) -> Iterator[str]:
    for sentence in re.split(r"[.\n;]\s*", tree.change.message):
        found = _TESTS.search(sentence)
        before = sentence[max(0, found.start() - 20) : found.end() + 20] if found is not None else ""
        if found is None or re.search(_NOT_YET, before) or re.match(r"(?i)\s*tests?\b", title):
            continue
        is_tested = any(tree.is_test(one.path) for one in tree.change.paths)
        if not is_tested and not re.search(r"(?m)^\s*(?:#\[test\]|assert|>>> |def test_|it\(|test\()", tree.added_text):
            yield f"the message speaks of tests ({found[0].strip()!r}), and no test changes"
            return


def _documents(tree: Tree, _: str) -> Iterator[str]:
    message = tree.change.message
    for claim, path, name in _DOCUMENTS:
        found = claim.search(message)
        if (
            found is not None
            and not re.search(_NOT_YET, message[max(0, found.start() - 15) : found.end()])
            and not any(path.search(one.path) for one in tree.change.paths)
        ):
            yield f"the message says {found[0].strip()!r}, and no {name} changes"


# Claims that nothing, or only one kind of thing, is otherwise


def _sameness(tree: Tree, title: str) -> Iterator[str]:
    looks: tuple[tuple[str, str, Callable[[Source], bool]], ...] = (
        (_FORMAT, "formatting", lambda one: _means(one) != _means(one, old=True)),
        (_NOTES, "documents", lambda one: is_run(one.path) and _means(one) != _means(one, old=True)),
        (_TYPO, "a typo", _is_more_than_a_typo),
        (_TYPES, "types", lambda one: one.suffix == ".py" and _means(one, imports=True) != _means(one, old=True, imports=True)),
        (_IMPORTS, "imports", lambda one: _means(one, imports=True) != _means(one, old=True, imports=True)),
        (
            _LOGS,
            "a log",
            lambda one: (
                one.is_python
                and not one.is_test
                and _means(one, imports=True, logs=True) != _means(one, old=True, imports=True, logs=True)
            ),
        ),
        (_ONLY_TESTS, "tests", lambda one: not one.is_test and is_code(one.path) and _means(one) != _means(one, old=True)),
        (_NO_CHANGE, "no change of what it does", lambda one: not one.is_test and _does_less(one, tree)),
    )
    for form, name, look in looks:
        text = title if form not in (_NO_CHANGE, _FORMAT) else tree.change.message
        found = re.search(f"(?im){form}", text)
        if found is None or (form is _FORMAT and "_format" in text):
            continue
        bad = next((one for one in tree.sources if is_run(one.path) and one.before and one.text and look(one)), None)
        if bad is not None:
            yield f"the message speaks of {name} ({found[0].strip()!r}), and {bad.path} does something else"
            return


def _means(one: Source, *, old: bool = False, imports: bool = False, logs: bool = False) -> str:
    return meaning(one.before if old else one.text, one.path, imports=imports, logs=logs)


def _is_more_than_a_typo(one: Source) -> bool:
    """Say whether more than the letters of words differ."""
    if not is_run(one.path) or one.is_test:
        return False
    first, second = (
        re.findall(r"[A-Za-z]+|\d+|[^\sA-Za-z\d]", " ".join(parts(text, one.path))) for text in (one.before, one.text)
    )
    for tag, a, b, c, d in difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        old, new = "".join(first[a:b]), "".join(second[c:d])
        if any(word.isdigit() for word in (*first[a:b], *second[c:d])):
            return True
        if difflib.SequenceMatcher(None, old.lower(), new.lower()).ratio() < 0.6 and not (old + new).isalpha():
            return True
    return False


_GUARDS = re.compile(
    r"\b(?:raise|throw|panic!?|assert|validate\w*|check\w*|verify\w*|escape\w*|sanitize\w*|quote|lock|acquire|timeout|limit)\b"
)
_COMMON = {
    "append",
    "extend",
    "push",
    "get",
    "len",
    "range",
    "list",
    "dict",
    "set",
    "str",
    "int",
    "items",
    "keys",
    "values",
    "format",
    "join",
    "map",
    "filter",
    "reduce",
    "forEach",
    "enumerate",
    "zip",
    "add",
    "print",
    "super",
    "isinstance",
    "iter",
    "next",
    "sum",
    "min",
    "max",
    "any",
    "all",
    "make",
    "new",
    "sorted",
}


def _does_less(one: Source, tree: Tree) -> bool:
    """Say whether a file lost what guards it, or a call, or has other numbers or comparisons, in all that the change touches."""
    if not is_code(one.path) or _means(one, imports=True) == _means(one, old=True, imports=True):
        return False
    code = [other for other in tree.sources if is_code(other.path) and not other.is_test]
    old, new = (
        Counter(token for other in code for token in parts(other.before if first else other.text, other.path))
        for first in (True, False)
    )
    lost, more = old - new, new - old
    if any(_GUARDS.fullmatch(token) for token in lost):
        return True
    numbers = [
        Counter({token: count for token, count in found.items() if token[0].isdigit() and token not in ("0", "1")})
        for found in (lost, more)
    ]
    compared = [
        Counter(
            {token: count for token, count in found.items() if token in ("<", ">", "<=", ">=", "==", "!=", "===", "!==", "not")}
        )
        for found in (lost, more)
    ]
    if (numbers[0] and numbers[1]) or (compared[0] and compared[1]):
        return True
    called = {match for other in code for match in re.findall(r"\b([A-Za-z_]\w*)\(", other.before)}
    return any(token in called and token not in new and token not in _COMMON and not _is_declared(token, code) for token in lost)


def _is_declared(name: str, code: list[Source]) -> bool:
    """Say whether a name was declared by what the change touches, so that its going is part of the change."""
    return any(found.name == name for one in code for found in declared(one.before, one.suffix))


def _renaming(tree: Tree, title: str) -> Iterator[str]:
    found = re.match(
        (
            r"(?i)(?:\w+(?:\([^)]*\))?:\s*)?rename[sd]?\s+(?:the\s+)?(?:\w+\s+)?[`'\"]?(?P<old>[\w.\-/$]+?)[`'\"]?\s+(?:to"
            r"|into|as|→)\s+[`'\"]?(?P<new>[\w.\-/$]+)[`'\"]?\s*(?P<rest>.*)$"
        ),
        title,
    )
    if found is None or re.search(r"(?i)\b(?:and|also|,)", found["rest"]):
        return
    old, new = (found[key].rpartition(".")[2] or found[key] for key in ("old", "new"))
    for one in tree.sources:
        if not is_code(one.path) or one.is_test or not one.before or not one.text:
            continue
        lost, more = Counter(parts(one.before, one.path)), Counter(parts(one.text, one.path))
        digits = [
            Counter(
                {
                    token: count
                    for token, count in (a - b).items()
                    if token[0].isdigit() or token in ("<", ">", "<=", ">=", "==", "!=", "+", "*", "/")
                }
            )
            for a, b in ((lost, more), (more, lost))
        ]
        if digits[0] and digits[1] and old not in "".join(digits[0]):
            yield f"the message says that {old} is called {new}, and {one.path} has other values too"
            return


# Places, names and numbers that the message says


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
