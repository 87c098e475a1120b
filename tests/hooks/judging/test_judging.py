"""What is judged of a call that names files."""

from pathlib import Path

import pytest

from decklog.hooks.judging import block_reason


def patch(*heads: str) -> str:
    return "\n".join(["*** Begin Patch", *(f"{head}\n+x" for head in heads), "*** End Patch"])


@pytest.mark.parametrize(
    ("heads", "is_held"),
    [
        (["*** Update File: src/x.py", "*** Add File: tests/test_x.py"], False),
        (["*** Delete File: src/old.py"], False),
        (["*** Add File: /etc/cron.d/x"], True),
        (["*** Update File: src/x.py", "*** Update File: .git/hooks/pre-commit"], True),
        (["*** Update File: src/x.py\n*** Move to: ../../../etc/passwd"], True),
        (["  *** Add File: .decklog/decklog.db"], True),
    ],
)
def test_a_patch_is_judged_by_the_files_that_it_names(tmp_path: Path, heads: list[str], is_held: bool) -> None:
    told = {"tool_name": "apply_patch", "tool_input": {"command": patch(*heads)}, "cwd": str(tmp_path)}
    reason = block_reason(told, str(tmp_path))
    assert (reason is not None) is is_held
