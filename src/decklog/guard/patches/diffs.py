"""Show what changed between two texts as a unified diff that `apply_patch` and git read back exactly."""

from collections.abc import Iterator
from difflib import SequenceMatcher

from decklog.core.errors import Invalid
from decklog.guard.files.root import Root
from decklog.guard.files.text import lines_of

NO_NEWLINE = "\\ No newline at end of file\n"
Opcode = tuple[str, int, int, int, int]


def generate_diff(root: Root, a_path: str, b_path: str, unified: int = 3) -> str:
    """Compare two files; give the diff with `unified` lines of context, empty when they are equal.

    Refuses binary files. A file that is not UTF-8 is shown as Latin-1.
    """
    a, b = root.read(a_path), root.read(b_path)
    for content in (a, b):
        if b"\0" in content.data:
            raise Invalid(f"{content.path!r} is binary", hint="Only texts can be compared.", path=content.path)
    encoding = _common_encoding(a.data, b.data)
    return diff_texts(a.data.decode(encoding), b.data.decode(encoding), a.path, b.path, unified)


def _common_encoding(a: bytes, b: bytes) -> str:
    try:
        (a + b"\n" + b).decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def diff_texts(a: str, b: str, a_name: str, b_name: str, unified: int = 3) -> str:
    """Compare two texts; give the diff with `unified` lines of context, empty when they are equal."""
    if unified < 0:
        raise Invalid(f"{unified} lines of context can't be shown", hint="Give 0 or more.", unified=unified)
    if a == b:
        return ""
    old, new = lines_of(a), lines_of(b)
    parts = [f"--- {_name('a', a_name)}\n+++ {_name('b', b_name)}\n"]
    for group in _grouped(_opcodes(old, new), unified):
        parts.extend(_hunk(old, new, group))
    return "".join(parts)


def _name(side: str, path: str) -> str:
    name = f"{side}/{path}"
    if any(char in '"\\' or char < " " for char in path):
        body = "".join(f"\\{ord(char):03o}" if char in '"\\' or char < " " else char for char in name)
        return f'"{body}"'
    # The tab tells a reader where a name with spaces ends.
    return f"{name}\t" if " " in name else name


def _opcodes(old: list[str], new: list[str]) -> list[Opcode]:
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    inner = SequenceMatcher(None, middle_old, middle_new).get_opcodes()
    codes = [(tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in inner]
    first: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    last: list[Opcode] = [("equal", len(old) - tail, len(old), len(new) - tail, len(new))] if tail else []
    return [*first, *codes, *last]


def _common(one: list[str], other: list[str]) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _grouped(codes: list[Opcode], context: int) -> Iterator[list[Opcode]]:
    group: list[Opcode] = []
    for index, (tag, i1, i2, j1, j2) in enumerate(codes):
        if tag != "equal":
            group.append((tag, i1, i2, j1, j2))
            continue
        before, after = min(context, i2 - i1), min(context, i2 - i1)
        is_first, is_last = index == 0, index == len(codes) - 1
        if not is_first and not is_last and i2 - i1 <= 2 * context:
            group.append((tag, i1, i2, j1, j2))
            continue
        if not is_first:
            yield [*group, ("equal", i1, i1 + after, j1, j1 + after)]
        group = [("equal", i2 - before, i2, j2 - before, j2)]
    if any(code[0] != "equal" for code in group):
        yield group


def _hunk(old: list[str], new: list[str], group: list[Opcode]) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n"
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            yield from (_line(" ", line) for line in old[i1:i2])
            continue
        yield from (_line("-", line) for line in old[i1:i2])
        yield from (_line("+", line) for line in new[j1:j2])


def _range(start: int, end: int) -> str:
    if end - start == 1:
        return str(start + 1)
    return f"{start if end == start else start + 1},{end - start}"


def _line(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n{NO_NEWLINE}"
