"""Secrets in the cells of tables, under a head that names them: drawn, comma-separated, of a wiki or of a page."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from decklog.prepared import prepared
from decklog.redact import lookalikes, phrases, values
from decklog.redact.names import kind_of
from decklog.redact.placeholders import BENIGN_WORDS
from decklog.redact.view import Found

# What lies between the cells of a row; between commas there is no blank.
ROW = prepared(r"[|\t│]|  |[^\s,;][,;][^\s,;]|<td|\b[A-Z]{1,2}\d+=")
# Where the next command begins.
PROMPT = prepared(
    r"[\w.@:~/\\()\[\] -]{0,60}[$#%>❯➜»λ]{1,3}[ \t]+(?=\S)|In \[\d+\]:[ \t]+"
    r"|\((?:gdb|lldb|i?[Pp]db\+*|rdb|byebug|dlv)\)[ \t]+|\+{1,3}[ \t]+(?=\S)"
)
_KEY_CELL = prepared(r"(?<![\w+/=.:-])[A-Za-z0-9+/_-]{40,128}={0,2}(?![\w+/=.:-])")
_RULE = prepared(r"[ \t|+:=─━┼│┃┿├┤╪═-]+(?:\n|$)")
_SEPARATORS = ("|", "│", "\t", ",", ";")
_SPACES = prepared(r"[ \t]{2,}")
_MOST_ROWS = 200
_CODE = frozenset("(){}=<>[]")
_NO_HEAD = prepared(r"[:.!?] |[:,][ \t]*$")
_HEAD_CELL, _CELL = (prepared(rf"(?i)<{name}(?:[ \t][^<>\n]*)?>([^<\n]*)</{name}>") for name in ("th", "td"))
# A dump names the columns of the rows below.
_COPIED = prepared(r"(?i)copy [\w.\"]{1,80} \(([\w\", ]{1,400})\) from stdin\b")
_SELECTED = prepared(r"(?i)\bselect ([\w.]{1,40}(?:, ?[\w.]{1,40}){1,9}) from\b")
_SEED = prepared(r"[A-Z2-7]{16,64}")
_SEEDS = prepared(r"(?i)\bt?otp(?:[ _-]?(?:secret|seed|key|auth))?$")
_DOORS = prepared(r"(?i)(?:t[üu]r|door|gate|alarm|access|zugangs|entry)[ _-]?codes?$")
_NETWORKS = prepared(r"(?i)wi-?fi[ _-](?:key|code)$|\bwlan[ _-]")
# Heads that say something about a secret.
_ABOUT = prepared(r"(?i)hash|n[uú]m|nummer|chang|geändert|date|age\b|policy|expir|strength|length|typ")
_DATE = prepared(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_JSON_END = prepared(r"\"[}\],]+$")
_NO_NAME = frozenset(",;:=：，。")
_NUMBERED_CELL = prepared(r"\b([A-Z]{1,2})1=(\S{2,24})")
_NUMBERED_VALUE = prepared(r"\b([A-Z]{1,2})\d{1,5}=(\S{4,64})")
_FAR = 4_000
_LONGEST_HEAD, _MOST_HEAD_WORDS = 32, 4
_AROUND = " \t\"'`*\r"


class _Cell(NamedTuple):
    """What a cell has in it, and where that begins in its row."""

    value: str
    start: int


Split = Callable[[str], list[_Cell]]


class Table(NamedTuple):
    """The secrets in a table, and where it ends; it ends where it begins if there is none."""

    found: list[Found]
    end: int


def read(text: str, line: str, place: int) -> Table:
    """Find the cells of a table under a head that names a secret: its head is a line, and the next one begins at a place."""
    if "<th" in line:
        return _cells(text, line, place, lambda row: _marked(row, _HEAD_CELL if "<th" in row else _CELL))
    if line.startswith("!") and "!!" in line:
        return _cells(text, line, place, lambda row: _between(row, "!!" if row.startswith("!") else "||", first="!| "))
    if cells := _NUMBERED_CELL.findall(line):
        return _numbered(text, place, [column for column, head in cells if names_secret(head)])
    if (asked := _SELECTED.search(line)) and text.startswith("|", place):
        # Only the question says what the columns are.
        return _cells(text, f"|{asked[1].replace(',', '|')}|", place, lambda row: _between(row, "|"))
    if copied := _COPIED.match(line):
        return _cells(text, copied[1].replace(",", "\t"), place, lambda row: _between(row, "\t"))
    if not _CODE.isdisjoint(line) or _NO_HEAD.search(line):
        return Table([], place)
    return _separated(text, line.replace("||", "|"), place)


def _separated(text: str, line: str, place: int) -> Table:
    separator = next((sign for sign in _SEPARATORS if sign in line), "")
    if line[:1] == "#":
        # A comment that says what the lines below it have, with a colon between if there is no blank: `# host:login:password`.
        line = line.lstrip("# \t")
        separator = separator or (":" if " " not in line and ":" in line else "")
    if not separator and not _SPACES.search(line.strip()):
        return Table([], place)
    end = text.find("\n", place) % (len(text) + 1)
    if not separator or line.count(separator) == text.count(separator, place, end) or _RULE.match(text, place):
        return _cells(text, line, place, lambda row: _between(row, separator) if separator else _spaced(row))
    # Where a cell is empty the others of its row stand under other heads.
    is_shifted = separator == "\t" and any(map(names_secret, line.split("\t")))
    return Table([*key_cells(text, place)] if is_shifted else [], place)


def key_cells(text: str, place: int) -> Iterator[Found]:
    """Find the cells of a table that can be nothing but keys, up to the next command or an empty line."""
    for _ in range(_MOST_ROWS):
        end = text.find("\n", place) % (len(text) + 1)
        if not text[place:end].strip() or PROMPT.match(text, place, end):
            return
        for cell in _KEY_CELL.finditer(text, place, end):
            if values.is_mixed_key(cell[0]):
                yield Found(*cell.span(), "listed-password")
        place = end + 1
        if place >= len(text):
            return


def _cells(text: str, line: str, place: int, split: Split) -> Table:
    heads = [cell.value for cell in split(line)]
    columns = [index for index, head in enumerate(heads) if head and _is_short(head) and names_secret(head)]
    found = list[Found]()
    if len(heads) < 2 or not columns or len(columns) == len(heads) or not _are_heads(heads):
        return Table(found, place)
    for _ in range(_MOST_ROWS):
        end = text.find("\n", place) % (len(text) + 1)
        row = text[place:end]
        if not _RULE.match(text, place) and row.strip() != "|-":
            cells = split(row)
            if len(cells) != len(heads):
                break
            for column in columns:
                value, start = cells[column]
                if value and _is_secret(heads[column], value):
                    found.append(Found(place + start, place + start + len(value), "listed-password"))
        place = end + 1
        if place >= len(text):
            break
    return Table(found, place)


def _are_heads(heads: list[str]) -> bool:
    return all(map(_is_head, heads[1:])) and (_is_head(heads[0]) or heads[0].isdigit())


def _numbered(text: str, place: int, columns: list[str]) -> Table:
    """Find the cells of a sheet that are written by their columns and rows: `C1=Password`, and below `C2=…`."""
    end = min(len(text), place + _FAR) if columns else place
    cells = [cell for cell in _NUMBERED_VALUE.finditer(text, place, end) if cell[1] in columns]
    odd = [cell for cell in cells if values.is_odd(cell[2]) and not values.is_harmless(cell[2])]
    return Table([Found(*cell.span(2), "listed-password") for cell in odd], end)


def _between(row: str, separator: str, first: str = "") -> list[_Cell]:
    """Give the cells between separators, those of a wiki without the sign that its row begins with."""
    begin = len(row) - len(row.lstrip(first)) if first else 0
    found, place = [], begin
    for cell in row[begin:].split(separator):
        found.append(_Cell(bare(cell), place + _offset(cell)))
        place += len(cell) + len(separator)
    return found


def _spaced(row: str) -> list[_Cell]:
    found, place = [], len(row) - len(row.lstrip())
    for cell in _SPACES.split(row.strip()):
        place = row.index(cell, place)
        found.append(_Cell(bare(cell), place + _offset(cell)))
        place += len(cell)
    return found


def _marked(row: str, cell: re.Pattern[str]) -> list[_Cell]:
    return [_Cell(bare(match[1]), match.start(1) + _offset(match[1])) for match in cell.finditer(row)]


def _offset(cell: str) -> int:
    return len(cell) - len(cell.lstrip(_AROUND))


def bare(cell: str) -> str:
    """Give what a cell has in it, without quotes and emphasis, and without the end of the JSON that a table is in."""
    return _JSON_END.sub("", cell).strip(_AROUND)


def names_secret(head: str) -> bool:
    """Tell whether the head of a column, or the name of one, is that of a secret, in any language."""
    if _ABOUT.search(head):
        return False
    if kind_of(head) in ("password", "secret", "token", "api-key", "pin") or _SEEDS.search(head) or _NETWORKS.search(head):
        return True
    if _DOORS.search(head):
        return True
    return phrases.names_secret(head.replace("_", " "))


def _is_short(head: str) -> bool:
    return len(head) < _LONGEST_HEAD and head.count(" ") < _MOST_HEAD_WORDS and "*" not in head


def _is_head(head: str) -> bool:
    """Tell whether a cell can be the name of a column."""
    return len(head) < 40 and (not head or head[0].isalpha() or head == "#") and not _NO_NAME.intersection(head)


def _is_secret(head: str, value: str) -> bool:
    if value.isdigit() and (kind_of(head) == "pin" or _DOORS.search(head)):
        return 4 <= len(value) <= 8
    if _SEEDS.search(head):
        return bool(_SEED.fullmatch(value))
    if " " in value:
        is_phrase = lookalikes.is_phrase(value) and any(map(str.isdigit, value))
        return is_phrase or ("phrase" in head.lower() and phrases.is_spoken_phrase(value))
    if values.is_harmless(value) or value.lower() in BENIGN_WORDS or "[redacted:" in value or _DATE.fullmatch(value):
        return False
    if values.looks_random(value) or values.is_odd(value) or lookalikes.is_word_phrase(value):
        return True
    if len(value) > 5 and not values.is_word(value) and value[0].isalnum():
        return True
    words = value.split("-")
    return len(words) > 3 and all(map(str.isalpha, words)) and lookalikes.THINGS.isdisjoint(words)
