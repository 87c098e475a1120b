"""Claims of the security page about the dashboard name their tests; agents may not open one."""

import re

from decklog.guard.policy import Decision, judge
from tests.db.processes import ROOT
from tests.every import every

_OPENING = ("decklog serve", "decklog --db x.db serve --port 1", "python -m decklog serve --read-only", "decklog top")
_HIDDEN = ("bash -c 'decklog serve'", "env decklog serve", "decklog se''rve", "decklog serve &", "(decklog serve)")
# What it keeps: under which name and at which port it is found. Who is logged in is in its memory alone.
_READING = ("cat ~/.local/state/decklog/serve/0.json", "cp ~/.local/state/decklog/serve/0.json .")
_WRITING = ("echo '{}' > ~/.local/state/decklog/serve/0.json", "rm -r ~/.local/state/decklog")


@every("command", [*_OPENING, *_HIDDEN, *_READING, *_WRITING])
def test_agents_may_not_open_a_dashboard_or_read_its_state_files(command: str) -> None:
    assert judge(command).decision is Decision.DENY


def test_security_claims_about_the_dashboard_name_existing_tests() -> None:
    section = (ROOT / "docs" / "security.md").read_text().partition("## The dashboard\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(test_\w+)`", section))
    places = ("web/*.py", "browser/*.py", "cli/test_terminal.py", "guard/sandbox/test_sandbox.py")
    sources = "".join(path.read_text() for place in places for path in (ROOT / "tests").glob(place))
    assert len(named) > 40
    assert {name for name in named if f"def {name}(" not in sources} == set()
