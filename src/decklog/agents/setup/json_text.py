"""Editing of JSON as text: our elements are inserted or removed, and all other bytes stay the same.

Comments and trailing commas are accepted, because several programs allow them in their settings.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from decklog.core.errors import Conflict, Invalid

Path = Sequence[str | int]

# An offset in the text, and the text to insert there.
Insertion = tuple[int, str]

_SCALAR = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null')
_BLANK = " \t\r\n"
_LINE_END = re.compile(r"[ \t]*(?=[\r\n]|\Z)")
_SPACE = re.compile(f"[{_BLANK}]*")
# A string, a line comment or a block comment.
_COMMENT = re.compile(r'"(?:[^"\\\r\n]|\\.)*"|(?P<line>//[^\n]*?(?=\r?\n|\r?\Z))|(?P<block>/\*.*?\*/)', re.DOTALL)
_DEPTH = 200


class NotJson(Invalid):
    """Invalid JSON; the message names the line."""

    code = "not_json"


@dataclass
class Element:
    """A member of an object, or an item of an array."""

    key: str | None
    start: int
    node: "Node"
    # Offset of the comma after the element.
    comma: int | None = None


@dataclass
class Node:
    """A value with its offsets; only objects and arrays have elements."""

    start: int
    end: int
    value: Any
    elements: list[Element] = field(default_factory=list)

    def child(self, step: str | int) -> Element | None:
        """Return an element; for duplicate names the last one, as JSON parsers do."""
        if isinstance(self.value, list) and isinstance(step, int):
            return self.elements[step] if 0 <= step < len(self.elements) else None
        return next((element for element in reversed(self.elements) if element.key == step), None)


def _without_comments(text: str) -> str:
    """Return a text of the same length, with blanks in place of comments."""
    return _COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " " * len(found[0]), text)


def parse(text: str) -> Node:
    """Parse a whole document."""
    return _Reader(text).document()


class _Reader:
    def __init__(self, text: str) -> None:
        self._whole = text
        self._text = _without_comments(text)
        # Some editors start a file with a byte order mark.
        self._place = 1 if text.startswith("\ufeff") else 0
        self._depth = 0

    def document(self) -> Node:
        self._skip()
        node = self._value()
        self._skip()
        if self._place < len(self._text):
            self._refuse("something follows the end")
        return node

    def _value(self) -> Node:
        if self._peek() in "{[" and self._peek():
            return self._container()
        start = self._place
        found = _SCALAR.match(self._text, start)
        if found is None:
            self._refuse("a value is missing")
        self._place = found.end()
        try:
            return Node(start, self._place, json.loads(found.group()))
        except ValueError:
            self._place = start
            self._refuse("a text has an escape that there is not")

    def _container(self) -> Node:
        self._depth += 1
        if self._depth > _DEPTH:
            self._refuse("it is nested too deeply")
        is_object = self._peek() == "{"
        node = Node(self._place, self._place, {} if is_object else [])
        self._place += 1
        while self._more("}" if is_object else "]", node):
            start = self._place
            key = self._key() if is_object else None
            node.elements.append(Element(key, start, self._value()))
        self._place += 1
        node.end = self._place
        for element in node.elements:
            if is_object:
                node.value[element.key] = element.node.value
            else:
                node.value.append(element.node.value)
        self._depth -= 1
        return node

    def _more(self, closing: str, node: Node) -> bool:
        """Advance to the next element; return whether there is one."""
        self._skip()
        if node.elements and self._peek() == ",":
            node.elements[-1].comma = self._place
            self._place += 1
            self._skip()
        elif node.elements and self._peek() != closing:
            self._refuse(f"a comma or {closing} is missing")
        return self._peek() != closing

    def _key(self) -> str:
        if self._peek() != '"':
            self._refuse("a name in quotes is missing")
        key = self._value().value
        self._skip()
        if self._peek() != ":":
            self._refuse("a colon is missing")
        self._place += 1
        self._skip()
        return str(key)

    def _peek(self) -> str:
        return self._text[self._place : self._place + 1]

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._place)
        assert found is not None
        self._place = found.end()
        if self._text.startswith("/*", self._place):
            self._refuse("a comment has no end")

    def _refuse(self, why: str) -> NoReturn:
        before = self._whole[: self._place]
        line, column = before.count("\n") + 1, self._place - before.rfind("\n")
        raise NotJson(f"{why} at line {line}, column {column}", line=line, column=column)


# Inserting


def plan_insertions(text: str, addition: Any) -> list[Insertion]:
    """Return the insertions that add the members and items of `addition` to the document's own."""
    insertions: list[Insertion] = []
    _add(_Style(text), parse(text), addition, insertions, "the document")
    return insertions


def _add(style: "_Style", node: Node, addition: Any, insertions: list[Insertion], where: str) -> None:
    if isinstance(addition, list) and isinstance(node.value, list):
        insertions += style.appended(node, [style.rendered(None, item, node) for item in addition])
    elif isinstance(addition, dict) and isinstance(node.value, dict):
        new = {key: value for key, value in addition.items() if node.child(key) is None}
        insertions += style.appended(node, [style.rendered(key, value, node) for key, value in new.items()])
        for key in (key for key in addition if key not in new):
            element = node.child(key)
            assert element is not None
            _add(style, element.node, addition[key], insertions, f'"{key}"')
    elif node.value != addition:
        raise Conflict(f"{where} is {json.dumps(node.value)[:60]} there, so nothing can be added to it")


class _Style:
    """Formatting of a document: line breaks and indentation."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._plain = _without_comments(text)
        self._break = "\r\n" if "\r\n" in text else "\n"
        found = re.search(r'[{\[,]\r?\n([ \t]+)["{\[]', text)
        self._unit = found.group(1) if found else "  "

    def rendered(self, key: str | None, value: Any, container: Node) -> str:
        """Return the text of an element in the style of its container: one line or several."""
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        if self._is_on_one_line(container):
            return name + json.dumps(value, ensure_ascii=False)
        lines = (name + json.dumps(value, ensure_ascii=False, indent=self._unit)).split("\n")
        return (self._break + self._inside(container)).join(lines)

    def appended(self, container: Node, elements: list[str]) -> list[Insertion]:
        """Return the insertions that append elements to a container."""
        if not elements:
            return []
        if not container.elements:
            return self._into_empty(container, elements)
        last = container.elements[-1]
        gap = " " if self._is_on_one_line(container) else self._break + self._inside(container)
        text = ",".join(gap + element for element in elements)
        if last.comma is not None:
            return [(self._line_end(last.comma + 1), text + ",")]
        return [(last.node.end, ","), (self._line_end(last.node.end), text)]

    def _into_empty(self, container: Node, elements: list[str]) -> list[Insertion]:
        place = self._line_end(container.start + 1)
        gap = self._break + self._inside(container)
        text = ",".join(gap + element for element in elements)
        is_closed_below = "\n" in self._text[place : container.end]
        return [(place, text if is_closed_below else text + self._break + self._indentation(container.start))]

    def _is_on_one_line(self, container: Node) -> bool:
        return bool(container.elements) and "\n" not in self._text[container.start : container.end]

    def _inside(self, container: Node) -> str:
        """Return the indentation of a container's elements."""
        if container.elements:
            first = container.elements[0].start
            indentation = self._indentation(first)
            if self._text[self._line_start(first) + len(indentation) : first] == "":
                return indentation
        return self._indentation(container.start) + self._unit

    def _indentation(self, place: int) -> str:
        start = self._line_start(place)
        end = start
        while self._text[end : end + 1] in (" ", "\t"):
            end += 1
        return self._text[start:end]

    def _line_start(self, place: int) -> int:
        return self._text.rfind("\n", 0, place) + 1 or (1 if self._text.startswith("\ufeff") else 0)

    def _line_end(self, place: int) -> int:
        """Return the end of the line if only comments follow on it; otherwise the offset itself."""
        rest = _LINE_END.match(self._plain, place)
        return place if rest is None else rest.end()


def with_insertions(text: str, insertions: list[Insertion]) -> str:
    """Insert texts at their offsets; those with the same offset keep their order."""
    parts, place = [], 0
    for offset, inserted in sorted(insertions, key=lambda insertion: insertion[0]):
        parts += [text[place:offset], inserted]
        place = offset
    return "".join([*parts, text[place:]])


def without_insertions(text: str, insertions: list[Insertion]) -> str | None:
    """Remove inserted texts; return None if they are not at their offsets."""
    parts, place, shift = [], 0, 0
    for offset, inserted in sorted(insertions, key=lambda insertion: insertion[0]):
        start = offset + shift
        if not text.startswith(inserted, start):
            return None
        parts.append(text[place:start])
        place = start + len(inserted)
        shift += len(inserted)
    return "".join([*parts, text[place:]])


# Removing


def remove_element(text: str, path: Path) -> str:
    """Remove the element at a path, with its comma; comments around it stay."""
    container = parse(text)
    for step in path[:-1]:
        found = container.child(step)
        assert found is not None
        container = found.node
    element = container.child(path[-1])
    assert element is not None
    cut = _around(text, element)
    before = container.elements.index(element)
    cuts = [cut]
    if element.comma is not None and element.comma >= cut[1]:
        cuts.append((element.comma, element.comma + 1))
    elif element.comma is None and before and (comma := container.elements[before - 1].comma) is not None:
        cuts.insert(0, (comma, comma + 1))
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text


def _around(text: str, element: Element) -> tuple[int, int]:
    """Return the range to cut for an element, with the whitespace before it and a directly following comma."""
    end = element.node.end
    if element.comma is not None and not text[end : element.comma].strip(_BLANK):
        end = element.comma + 1
    start = element.start
    while text[start - 1] in _BLANK:
        start -= 1
    if start not in {found.end() for found in _COMMENT.finditer(text) if found["line"]}:
        return start, end
    # A line comment ends before the element, so its line break must stay; cut whole lines instead.
    line = text.rfind("\n", 0, element.start) + 1
    rest = re.compile(r"[ \t]*\r?\n").match(text, end)
    return (line, rest.end()) if rest else (element.start, end)
