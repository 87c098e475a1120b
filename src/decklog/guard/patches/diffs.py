"""Show what changed between two texts as a unified diff that `apply_patch` and git read back exactly."""

from difflib import unified_diff

from decklog.core.errors import Invalid
from decklog.guard.files.root import Root
from decklog.guard.files.text import lines_of

NO_NEWLINE = "\\ No newline at end of file\n"


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
    """Compare two texts; return the diff with `unified` lines of context, empty when they are equal."""
    if unified < 0:
        raise Invalid(f"{unified} lines of context can't be shown", hint="Give 0 or more.", unified=unified)
    lines = list(unified_diff(lines_of(a), lines_of(b), n=unified))
    if not lines:
        return ""
    body = [line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}" for line in lines[2:]]
    return "".join([f"--- {_name('a', a_name)}\n+++ {_name('b', b_name)}\n", *body])


def _name(side: str, path: str) -> str:
    name = f"{side}/{path}"
    if any(char in '"\\' or char < " " for char in path):
        body = "".join(f"\\{ord(char):03o}" if char in '"\\' or char < " " else char for char in name)
        return f'"{body}"'
    # The tab marks the end of a name with spaces.
    return f"{name}\t" if " " in name else name
