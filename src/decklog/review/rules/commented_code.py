"""Code that is commented out: blocks, settings, recipes, pages, and texts that nothing reads."""

import ast
import re
from collections.abc import Iterator

from decklog.core.python_source import parsed
from decklog.review.rules.rule import SHELLS, Found, Told
from decklog.review.rules.source import Source

DEAD = Told("commented-out", "code that is commented out", "Take it out; the history keeps it.")
_BLOCK = re.compile(
    r"^[ \t]*\*?\s*(?:[^*\s].*[;{]|\}[;,)]*|return\b[^.]*|(?:const|let|var|val|if|for|while|import|func|fn|def)\b.*[=({].*)\s*$"
)
_MARKUP = re.compile(r"<(?:/?[a-z][\w-]*|[A-Z]\w*)(?:\s[^<>]*)?/?>")
_STYLE = re.compile(r"[.#\w][^{}]*\{[^{}]*:[^{}]*\}|^[ \t]*[\w-]+\s*:\s*[^;{}]+;\s*$")
_IMAGE = re.compile(r"^(?:RUN|COPY|ADD|ENV|FROM|CMD|ENTRYPOINT|WORKDIR|USER|EXPOSE|ARG|LABEL|VOLUME)\s+\S")
_COMMAND = re.compile(
    r"^(?:sudo\s+)?(?:rm|cp|mv|mkdir|cd|export|git|docker|npm|npx|yarn|pip3?|python3?|make|curl|wget|apt-get|source|sed|awk"
    r"|grep|chmod|chown|ssh|scp|kubectl|helm|go|cargo|tar|cat|ls|touch|exit|set|if|for|while|local|test|pytest|terraform"
    r"|systemctl)"
    r"\s+(?:-\w|--\w|\"|'|\$|\.{0,2}/|\[|[\w.-]+/|run\b|install\b|test\b|push\b|build\b)|^\w+=(?:\"|'|\$|\d+$)|^echo\s+[\"'$]"
    r"|^\w+\(\)\s*\{|^(?:fi|done|esac)$"
)
_SETTING = re.compile(
    r"^-?\s*['\"]?[\w.\-/]+['\"]?\s*(?:=\s*|:\s+)(?:\d[\w.]*|true|false|null|yes|no|['\"].*['\"]|\[.*\]|\{.*\})\s*,?$"
    r"|^\[{1,2}[\w.\-\" ]+\]{1,2}$|^-\s+(?:run|name|uses|script|image|id|repo|key|path|hosts)\s*:\s*\S|^-\s+[\w./-]+$|^[\w.-]+:$"
)
_RECIPE = re.compile(r"^#\t\s*\S|^#\s*[\w.-]+:(?:\s*[\w. -]*)?$")
_PLAIN = re.compile(
    r"(?:^|\n)\s*(?:@?[\w.$]+\s*=\s*[\w.$:]+\(.*\)|return\s+\w+(?:\s+(?:if|unless)\s+\w+)?|(?:if|unless|elsif"
    r"|while)\s+[\w.@?]+\s*(?:[=!<>]=?\s*\S+)?\s*(?:then)?|end|def\s+\w+.*)\s*(?=\n|$)"
)
_SETTINGS = (".yml", ".yaml", ".toml", ".ini", ".cfg", ".conf", ".properties", ".env")


def commented_code(source: Source) -> Iterator[Found]:
    """Find comments on new lines that are code of another form than lines of a program."""
    if source.is_prose or re.search(r"example|sample|template|\.dist$|default", source.name):
        return
    if source.is_python:
        yield from _unread_texts(source)
        return
    for line, block in _blocks(source):
        if _is_code(source, block):
            yield Found(DEAD, line)


def _blocks(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Give the comments that begin on new lines; those of one line that follow each other are one."""
    last, first = -1, 0
    block: list[str] = []
    for line, note in source.notes():
        if note.startswith(("/*", "<!--")):
            if not note.startswith(("/**", "/*!")):
                yield line, [note]
            continue
        if line != last + 1 and block:
            yield first, block
            block = []
        if not block:
            first = line
        block.append(note)
        last = line
    if block:
        yield first, block


def _is_code(source: Source, block: list[str]) -> bool:
    whole, suffix, name = "\n".join(block), source.suffix, source.name.lower()
    if whole.startswith("<!--"):
        return _MARKUP.search(whole) is not None and "[if " not in whole
    if whole.startswith("/*"):
        inner = whole[2:].removesuffix("*/")
        if suffix in (".css", ".scss", ".less"):
            return any(_STYLE.search(part) for part in inner.split("\n"))
        is_markup = suffix in (".jsx", ".tsx", ".js", ".vue", ".svelte") and re.match(r"\s*<[A-Za-z]", inner) is not None
        return is_markup or ("\n" in inner and sum(_BLOCK.match(part) is not None for part in inner.split("\n")) >= 2)
    if name.startswith(("dockerfile", "containerfile")) or suffix == ".dockerfile":
        return any(_IMAGE.match(part.lstrip("# ")) for part in block)
    if "makefile" in name or suffix == ".mk":
        return any(_RECIPE.match(part) for part in block)
    stripped = [part.lstrip("#/-; ").rstrip() for part in block]
    if suffix in SHELLS:
        return any(_COMMAND.match(part) for part in stripped)
    if suffix in _SETTINGS:
        # One setting among words shows what may be set; several without a word were taken out.
        told = [part.lstrip("#; ").rstrip() for part in block if part.strip("#; ")]
        return len(told) >= 2 and all(_SETTING.match(part) for part in told)
    return suffix in (".rb", ".ex", ".exs", ".lua", ".pl") and any(_PLAIN.search(part) for part in stripped)


def _unread_texts(source: Source) -> Iterator[Found]:
    """Find texts that stand alone and are Python."""
    for node in ast.walk(source.tree) if source.tree is not None else ():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            text = node.value.value
            if "\n" in text and source.is_new(node.lineno, node.end_lineno or node.lineno) and _is_python(text):
                yield Found(DEAD, node.lineno)


def _is_python(text: str) -> bool:
    import textwrap

    tree = parsed(textwrap.dedent(text).encode(errors="replace"))
    return tree is not None and len(tree.body) >= 2 and all(_does(node) for node in tree.body)


def _does(node: ast.stmt) -> bool:
    return not isinstance(node, ast.Expr | ast.AnnAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
