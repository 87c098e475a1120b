"""A new user follows the page about agents from an empty repository to a landed change by each of two programs."""

from pathlib import Path

import pytest

from decklog.guard.sandbox.sandbox import SandboxKind, best_kind
from tests.agents.fake_model import FakeModel, Step
from tests.agents.real.programs import CLAUDE, CODEX, needs
from tests.agents.real.test_conductor import by_bash, by_exec, claude_settings, codex_settings
from tests.db.processes import ROOT
from tests.project.documents import CONSOLE, WITH_AGENTS, answers, blocks_of, shows, steps_of, variables


@needs(CLAUDE)
@needs(CODEX)
@pytest.mark.skipif(best_kind() is SandboxKind.NONE, reason="no sandbox can be had here")
def test_the_page_about_agents_leads_to_a_landed_change_by_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, folder = tmp_path / "home", tmp_path / "shop"
    home.mkdir()
    folder.mkdir()
    readme = [Step("I add it.", (by_bash("echo 'Prices are in cents.' >> README.md"),)), Step("It is added.")]
    hours = [Step("I add it.", (by_exec("echo 'From 9 to 5.' >> HOURS.md"),)), Step("It is added.")]
    with FakeModel({"none": readme}) as first, FakeModel({"none": hours}) as second:
        claude_settings(first, home, monkeypatch)
        codex_settings(second, home, monkeypatch)
        further = {
            "ANTHROPIC_BASE_URL": first.address,
            "ANTHROPIC_API_KEY": "dummy",
            "CODEX_API_KEY": "dummy",
            "PATH": f"{CLAUDE.parent}:{CODEX.parent}:{variables(home)['PATH']}",
        }
        (page,) = WITH_AGENTS
        for block in blocks_of(ROOT / page):
            if block.file_name:
                (folder / block.file_name).write_text(block.text)
            elif block.language == CONSOLE:
                steps = steps_of(block)
                for step, (code, said) in zip(steps, answers(steps, folder, home, further=further), strict=True):
                    assert code == 0, f"{step.command}\n{said}"
                    assert not step.shown or shows(step.shown, said), f"{step.command}\n{said}"
    assert (folder / "README.md").read_text() == "Prices are in cents.\n" * 2
    assert (folder / "HOURS.md").read_text() == "From 9 to 5.\n"
