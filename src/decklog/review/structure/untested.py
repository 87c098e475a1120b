"""Behaviour that changes while no test does, and expected values that are fitted to what came out."""

import re
from collections.abc import Iterator

from decklog.review.rules.languages import suffix_of
from decklog.review.rules.rule import JVM, SCRIPTS, C
from decklog.review.rules.source import Source
from decklog.review.structure.signatures import declared
from decklog.review.structure.tokens import meaning, replaced
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import Tree

_TESTED = (".py", *SCRIPTS, *JVM, *C, ".go", ".rs", ".php", ".rb", ".cs", ".swift", ".dart")
# What says that it does the same as before; whether that is true is another question, and asked elsewhere.
SAME = re.compile(
    r"(?i)\b(?:refactor\w*|simplif\w+|speed\w* up|faster|optimi[sz]\w*|performance"
    r"|clean(?:s|ed|ing)? ?up|tid(?:y|ies|ied)\w*|extract\w*|inlin\w+|rewr\w+"
    r"|reformat\w*"
    r"|format(?:ting)?|renam\w+|reorgani[sz]\w*|restructur\w*|split\w* .* (?:into"
    r"|out)|moved?\b|moves|cheaper|lint\w*|typos?|style|cosmetic|no functional"
    r"|deduplicat\w*|modernis\w*"
    r"|(?:import|circular) \w*(?:cycle|import|dependenc)\w*|decoupl\w*|replac\w+ .* (?:by"
    r"|with)|use \w+ (?:for|instead)|reus\w+|shorten\w*|unif(?:y|ies)|consolidat\w*)\b"
)
_QUIET = re.compile(
    r"(?i)^(?:revert|merge|release|bump|docs?\b|chore\b|ci\b|build\b|style\b|comment"
    r"|document|explain|remove|delete|drop|log\b|add (?:type|logging|a comment"
    r"|comments|docstrings?)|type|types|upgrade|update (?:dep|the dep))|\btyp(?:e hints"
    r"|es|ing)\b|\bannotat"
)
_FITTING = re.compile(
    r"(?i)\b(?:fix|update|adjust|adapt|repair|correct|mend|stabili[sz]e|unbreak)\w*\s+(?:the\s+"
    r"|a\s+|some\s+|all\s+)?(?:\w+\s+){0,2}tests?\b|\bmake (?:the )?(?:tests?"
    r"|ci|build)\b.*\b(?:pass|green|happy)|\btests? (?:green|pass)"
)
_SWITCHING = re.compile(r"(?i)(?:use|switch\w* to|convert|adopt|migrate)\b")
_EXPECTS = re.compile(
    r"(?i)\bassert|\bexpect|\bshould|\bwant\b|\bgot\b|equal|\bis_deeply\b|\bmust\b"
    r"|==|!=|parametri|^\s*[\[({\"']"
)
_SQL = re.compile(r"(?i)\b(?:select|insert|update|delete)\b.*\b(?:from|into|set|where)\b")


def untested(tree: Tree) -> Iterator[Trouble]:
    """Find a change of what code does, in a repository whose tests name that code, without a change of any test."""
    title = tree.change.message.partition("\n")[0]
    if any(one.is_test for one in tree.sources) or any(tree.is_test(one.path) for one in tree.change.paths):
        return
    if not tree.change.messages or SAME.search(title) or _QUIET.search(title):
        return
    for source in tree.sources:
        if source.suffix not in _TESTED or not source.before or not _does_otherwise(source):
            continue
        if re.search(r"#\[(?:cfg\(test\)|test)\]", source.text) and re.search(
            r"(?m)^\s*(?:assert\w*!|#\[test\])", tree.added_text
        ):
            continue
        if _is_tested(tree, source):
            text = "what it does is otherwise, tests name it, and none of them changes"
            yield Trouble("untested", text, source.path, min(source.added, default=1), "Have a test that shows what is new.")
            return


def _does_otherwise(source: Source) -> bool:
    """Say whether a file does something else or something more; less, other words and other types are not looked at."""
    plain = [meaning(text, source.path, imports=True, logs=True, strings=True) for text in (source.before, source.text)]
    if plain[0] != plain[1]:
        return any(
            row.strip() and row.strip() not in ("{", "}", "(", ")", "pass")
            for row in (source.rows[number - 1] for number in source.added)
        )
    full = [meaning(text, source.path, imports=True, logs=True) for text in (source.before, source.text)]
    return full[0] != full[1] and any(_SQL.search(source.rows[number - 1]) for number in source.added)


def _is_tested(tree: Tree, source: Source) -> bool:
    """Say whether a test names the module, or a function of it."""
    stem = source.name.rpartition(".")[0]
    names = {one.name for one in declared(source.text, source.suffix) if len(one.name) > 2} | (
        {stem} if stem not in ("lib", "main", "index", "mod", "__init__") else set()
    )
    for path, text in tree.naming(names).items():
        if (
            tree.is_test(path)
            and suffix_of(path) in _TESTED
            and any(re.search(rf"\b{re.escape(name)}\b", text) for name in names)
        ):
            return True
    return False


def fitted(tree: Tree) -> Iterator[Trouble]:
    """Find expected values that change with the code, where the message says that nothing should come out otherwise."""
    title = tree.change.message.partition("\n")[0]
    if not (SAME.search(title) or _FITTING.search(title) or _SWITCHING.match(title)) or re.search(r"(?i)\balso\b", title):
        return
    code = [one for one in tree.sources if one.suffix in _TESTED and not one.is_test]
    if not any(
        meaning(one.before, one.path, imports=True) != meaning(one.text, one.path, imports=True)
        for one in code
        if one.before and one.text
    ):
        return
    moved = _words(tree.change.message)
    for source in tree.sources:
        if (
            not source.is_test
            or source.is_prose
            or not source.before
            or source.suffix not in (*_TESTED, ".snap", ".json", ".yaml")
        ):
            continue
        for number, old, new in _expected(source):
            differing = _words(old) ^ _words(new)
            if not differing or not differing <= moved:
                text = "an expected value changes with the code, and the message says that the code does the same"
                yield Trouble("fitted-test", text, source.path, number, "Say why another value is right, or mend the code.")
                return


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _expected(source: Source) -> Iterator[tuple[int, str, str]]:
    for one in replaced(source):
        if _EXPECTS.search(one.before):
            for old, new, _ in one.values:
                yield one.line, old, new
    gone = [line.text for line in source.lines if line.sign == "-"]
    for number in sorted(source.added):
        row = source.rows[number - 1]
        before = next((text for text in gone if text != row and _frame(text) == _frame(row) and _EXPECTS.search(text)), None)
        if before is not None and re.search(r"[\"'\d]", before):
            yield number, before.strip(), row.strip()


def _frame(row: str) -> str:
    """Give a line without its values, and up to what is expected of it where that is a sum or the like."""
    cut = re.split(r"==|!=|\.to\w*\(", row.strip(), maxsplit=1)
    first = cut[0] if len(cut) > 1 and len(cut[0]) > 6 else row
    return re.sub(r"\s+", " ", re.sub(r"\"[^\"]*\"|'[^']*'|-?\d[\d.]*", "0", first)).strip()
