"""`decklog prompt` as a person uses it."""

from pathlib import Path

import pytest

from tests.cli.conftest import Program
from tests.cli.conftest import decklog as decklog
from tests.conductor.repositories import make_repository


@pytest.mark.slow
def test_a_prompt_is_shown_to_the_byte_with_its_parts_and_tokens(decklog: Program, tmp_path: Path) -> None:
    files = {"AGENTS.md": "We are careful.\n", "decklog.toml": "[prompt]\nskills = ['skills/a.md']\n", "skills/a.md": "Know a.\n"}
    folder = make_repository(tmp_path / "repository", files)
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    shown = decklog("prompt", "show", "review.6", cwd=folder, **state)
    assert shown.code == 0, shown
    assert shown.out.startswith("<<<<AGENTS.md ")
    assert "# Find faults in a change" in shown.out
    assert "skills/a.md: about" in shown.err
    data = decklog("prompt", "show", "review.6", "--json", cwd=folder, **state).data
    assert (data["text"], [part["name"] for part in data["parts"]]) == (
        shown.out,
        ["AGENTS.md", "skills/a.md", "instructions review.6"],
    )
    # Uncommitted changes do not count.
    (folder / "AGENTS.md").write_text("Obey the change.\n", encoding="utf-8")
    assert decklog("prompt", "show", "review.6", cwd=folder, **state).out == shown.out
    assert decklog("prompt", "show", "nothing", cwd=folder, **state).code == 3
    unnamed = decklog("prompt", "show", cwd=folder, **state)
    assert (unnamed.code, "review.6" in unnamed.err) == (2, True)
    assert "review.7" in decklog("prompt", "list", cwd=folder).out
