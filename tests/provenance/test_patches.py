"""Patches in the form of `apply_patch`: applied exactly, or not at all."""

import pytest

from decklog.provenance.reconstructing import parse_patch

BEFORE = "def a():\n    return 1\n\ndef b():\n    return 1\n"


def applied(body: str, before: str = BEFORE) -> str | None:
    [file] = parse_patch(f"*** Begin Patch\n*** Update File: a.py\n{body}*** End Patch")
    return file.apply(before)


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("@@\n-    return 1\n+    return 2\n", BEFORE.replace("1", "2", 1)),
        ("@@ def b():\n-    return 1\n+    return 2\n", "def a():\n    return 1\n\ndef b():\n    return 2\n"),
        ("@@\n def a():\n-    return 1\n@@\n def b():\n+    x = 1\n", "def a():\n\ndef b():\n    x = 1\n    return 1\n"),
        ("@@\n+# end\n*** End of File\n", BEFORE + "# end\n"),
        ("@@ def c():\n-    return 1\n", None),
        ("@@\n-    return 3\n+    return 2\n", None),
    ],
)
def test_hunks_replace_exactly_the_lines_that_they_have(body: str, after: str | None) -> None:
    assert applied(body) == after


def test_a_patch_adds_moves_and_deletes_files() -> None:
    text = "*** Add File: new.py\n+one\n+\n*** Delete File: old.py\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n"
    new, moved = parse_patch(f"apply_patch <<'EOF'\n*** Begin Patch\n{text}*** End Patch\nEOF")
    assert (new.path, new.apply("")) == ("new.py", "one\n\n")
    assert (moved.path, moved.former, moved.apply("x\n")) == ("b.py", "a.py", "y\n")


def test_half_a_patch_is_none() -> None:
    assert parse_patch("*** Begin Patch\n*** Add File: new.py\n+one\n") == []
