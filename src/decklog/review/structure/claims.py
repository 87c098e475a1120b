"""What the message of a change claims and the change does not do."""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator

from decklog.review.rules.source import Source
from decklog.review.structure.claimed_names import NAMED
from decklog.review.structure.signatures import declared
from decklog.review.structure.tokens import is_code, is_run, meaning, parts
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import Tree

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
    r"\bno changes? (?:in|of|to) (?:the )?(?:results?|behaviou?r|outputs?|semantics)|\bsame (?:results?|output)\b"
    r"|\bno (?:functional|behaviou?r\w*|semantic|code|logic)\s*(?:change|difference)s?"
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
_LINT = (
    r"^(?:fix|silence|address|resolve)\w*\s+(?:the\s+|some\s+|all\s+)?(?:\w+\s+)?"
    r"(?:lint\w*|warnings?|style (?:issues|errors)|flake8|eslint|clippy|pylint|ruff)\b"
)
_MOVE = r"^mov(?:e|es|ed|ing)\b(?!.*\b(?:and|also)\b)"
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
    for look in (_tests, _documents, _sameness, _renaming, *NAMED):
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
            lambda one: not one.is_test and is_code(one.path) and other_values([one]),
        ),
        (_ONLY_TESTS, "tests", lambda one: not one.is_test and is_code(one.path) and _means(one) != _means(one, old=True)),
        (_LINT, "a linter", lambda one: not one.is_test and is_code(one.path) and other_values([one])),
        (
            _MOVE,
            "a move",
            lambda one: not one.is_test and other_values([one for one in tree.sources if is_code(one.path) and not one.is_test]),
        ),
        (_NO_CHANGE, "no change of what it does", lambda one: not one.is_test and _does_less(one, tree)),
    )
    for form, name, look in looks:
        text = title if form not in (_NO_CHANGE, _FORMAT) else tree.change.message
        found = re.search(f"(?im){form}", text)
        if found is None or (form is _FORMAT and "_format" in text):
            continue
        bad = next(
            (one for one in tree.sources if is_run(one.path) and ((one.before and one.text) or form is _MOVE) and look(one)), None
        )
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


_COMPARED = ("<", ">", "<=", ">=", "==", "!=", "===", "!==", "not")
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
    lost = old - new
    if any(_GUARDS.fullmatch(token) for token in lost):
        return True
    if other_values(code):
        return True
    called = {match for other in code for match in re.findall(r"\b([A-Za-z_]\w*)\(", other.before)}
    return any(token in called and token not in new and token not in _COMMON and not _is_declared(token, code) for token in lost)


def other_values(code: list[Source]) -> bool:
    """Say whether numbers, comparisons or sums are others in all of these files together."""
    old, new = ([_kind(token) for one in code for token in parts(text(one), one.path)] for text in (_before, _after))
    lost, more = Counter(old) - Counter(new), Counter(new) - Counter(old)
    return bool({kind for kind, _ in lost if kind} & {kind for kind, _ in more if kind})


def _before(one: Source) -> str:
    return one.before


def _after(one: Source) -> str:
    return one.text


def _kind(token: str) -> tuple[str, str]:
    if token[0].isdigit() and token not in ("0", "1"):
        return "number", token
    return ("comparison" if token in _COMPARED else "sum" if token in "+-*/%" else ""), token


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
