"""Calls that run what others wrote, in languages whose syntax is not read here: found line by line, by how they are spelled.

Only what is plain on one line is found: a text that is put together and handed on, or data that makes objects of any kind. What a
name stands for is not followed, as it is in Python.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from decklog.review.change import AddedLine
from decklog.review.rules.languages import COMMENTS, suffix_of

_SCRIPTS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue")
_JVM = (".java", ".kt", ".kts", ".scala")
_C = (".c", ".h", ".cc", ".cpp", ".hpp")
_EVAL = ("eval", "a text is run as code", "Read the text by what it may be: JSON, or a table of functions.")
_SHELL = ("shell", "a text that is put together is given to a shell", "Give the program and its arguments apart.")
_LOADING = ("unpickling", "objects are made of whatever the data says", "Keep data as JSON, or in a table.")
_SQL = ("sql", "a statement is put together from values", "Bind the values as parameters.")
_START = r"(?<![\w.$>:])"


@dataclass(frozen=True)
class LineDanger:
    """A dangerous call on one line."""

    kind: str
    text: str
    remedy: str
    line: AddedLine


def _rule(
    suffixes: tuple[str, ...], told: tuple[str, str, str], *patterns: str
) -> tuple[tuple[str, ...], tuple[str, str, str], re.Pattern[str]]:
    return suffixes, told, re.compile("|".join(patterns))


# A literal that begins a statement, and values that come into it: by adding, by a mark within it, or by a form.
_STATEMENT = r"(?:select\b[^\"'`]*\bfrom|insert\s+into|update\b[^\"'`]*\bset|delete\s+from)\b"
_RULES = (
    _rule(_SCRIPTS, _EVAL, rf"{_START}(?:eval|new Function)\(\s*(?![\"'`)])"),
    _rule(
        _SCRIPTS,
        _SHELL,
        rf"(?:{_START}|\bchild_process\.|\bcp\.)exec(?:Sync)?\(\s*(?:`[^`]*\$\{{|[\"'][^\"']*[\"']\s*\+|[\w.]+\s*\+)",
        r"\bshell:\s*true\b",
    ),
    _rule((".php",), _EVAL, rf"{_START}eval\s*\(\s*[^'\")\s]"),
    _rule((".php",), _SHELL, rf"{_START}(?:system|exec|shell_exec|passthru|popen|proc_open)\s*\((?!.*escapeshell)[^)]*\$"),
    _rule((".php",), _LOADING, rf"{_START}unserialize\s*\((?!.*allowed_classes)"),
    _rule((".rb",), _EVAL, rf"{_START}eval[\s(]+(?![\"'][^#]*[\"']\)?\s*$)[\w\"']"),
    _rule((".rb",), _SHELL, rf"{_START}(?:system|exec|spawn)[\s(]+\"[^\"]*#\{{", r"(?:^|[\s=(])`[^`]*#\{"),
    _rule((".rb",), _LOADING, r"\bMarshal\.(?:load|restore)\b", r"\bYAML\.unsafe_load"),
    _rule((".pl", ".pm"), _EVAL, rf"{_START}eval\s*\(?\s*[\"$]"),
    _rule((".pl", ".pm"), _SHELL, rf"{_START}(?:system|exec)\s*\(?\s*\"[^\"]*[$@]\w", r"(?:^|[\s=(])`[^`]*[$@]\w"),
    _rule(_JVM, _LOADING, r"\bObjectInputStream\("),
    _rule(_JVM, _SHELL, r"\bgetRuntime\(\)\.exec\([^)]*(?:\+|\$)"),
    _rule((".cs",), _LOADING, r"\b(?:BinaryFormatter|NetDataContractSerializer|LosFormatter)\("),
    _rule((".go",), _SHELL, r"\bexec\.Command(?:Context)?\((?:\w+,\s*)?\"(?:ba|z)?sh\",\s*\"-l?c\",\s*(?!\"[^\"]*\"\s*\))"),
    _rule(_C, _SHELL, rf"{_START}(?:system|popen)\(\s*(?![\"\s)])"),
    _rule((".lua",), _EVAL, rf"{_START}loadstring\(\s*(?![\"'])"),
    _rule((".lua",), _SHELL, r"\b(?:os\.execute|io\.popen)\([^)]*\.\."),
    _rule((".ps1", ".psm1"), _EVAL, r"(?i)\b(?:invoke-expression|iex)\s+[$(\"]"),
    _rule(
        tuple(COMMENTS),
        _SQL,
        rf"(?i)\w*(?:quer|exec|command|statement|raw|find_by_sql|prepare)\w*!?\s*\(\s*(?:\w+,\s*)?(?:"
        rf"(?P<quote>[\"'`])\s*{_STATEMENT}.*(?:(?P=quote)\s*(?:\+|\.\s*\$|\.\.)|#\{{)"
        rf"|`\s*{_STATEMENT}[^`]*\$\{{|[\w.]*(?:sprintf|format)\(\s*\"\s*{_STATEMENT}[^\"]*%[svdq]|\$@?\"\s*{_STATEMENT}[^\"]*\{{)",
    ),
    _rule((".php", ".pl", ".pm", ".kt", ".kts"), _SQL, rf"(?i)\w*(?:quer|exec|prepare)\w*\s*\(\s*\"\s*{_STATEMENT}[^\"]*\$\w"),
)


def line_dangers(path: str, lines: Sequence[AddedLine]) -> Iterator[LineDanger]:
    """Find dangerous calls in the lines that are added to a file; Python's are found by its syntax."""
    suffix = suffix_of(path)
    rules = [
        (told, pattern) for suffixes, told, pattern in _RULES if suffix in suffixes and suffix not in (".py", ".sh", ".bash")
    ]
    for line in lines if rules else ():
        if line.text.lstrip().startswith((COMMENTS.get(suffix, "#"), "*", "/*")):
            continue
        for told, pattern in rules:
            found = pattern.search(line.text)
            if found is not None and not _is_in_text(line.text, found.start()):
                yield LineDanger(*told, line)


def _is_in_text(line: str, at: int) -> bool:
    """Say whether a place in a line lies within a text that began before it."""
    quote = ""
    for number, sign in enumerate(line[:at]):
        if quote:
            quote = "" if sign == quote and line[number - 1] != "\\" else quote
        elif sign in "\"'`":
            quote = sign
    return bool(quote) and quote in line[at:]
