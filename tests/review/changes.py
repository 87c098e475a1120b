"""Changes to a small repository with a gate, and models that follow a script."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from decklog import Decklog, Review
from decklog.conductor.git.repository import Repository
from decklog.models.composer import Prompt
from decklog.models.provider import ModelReply, Provider
from decklog.models.providers.making import Scripted
from decklog.review import gate
from decklog.review.change import Change, between, worktree_change
from decklog.review.deterministic import run_security, run_static
from decklog.review.linters import LinterReport
from decklog.review.result import StageResult
from decklog.review.settings import ReviewSettings, Rules
from tests.conductor.plans import CALC, RUNNER, TESTS
from tests.conductor.repositories import git, make_repository, write

SETTINGS = f"""
[run]
sandbox = "none"
[models.mine]
provider = "scripted"
script = "unused.json"
[calls]
review = "mine"
[review]
base = "main"
measure_seconds = 0
[[checks]]
name = "tests"
command = {json.dumps([sys.executable, "-I", "-S", str(RUNNER), "{report}"])}
report = "junit"
minutes = 0.5
"""
FILES = {"calc.py": CALC, "tests/test_calc.py": TESTS, "decklog.toml": SETTINGS}
GOOD = {
    "calc.py": CALC + "\n\ndef triple(a):\n    return 3 * a\n",
    "tests/test_calc.py": TESTS + "\n\ndef test_triple():\n    assert calc.triple(2) == 6\n",
}
# A fix whose test fails on the base by what it claims, and settings by which a probe can see that it runs the fix.
FIX = {
    "calc.py": CALC.replace("a + b", "int(a) + int(b)"),
    "tests/test_calc.py": TESTS + '\n\ndef test_add_of_texts():\n    assert calc.add("2", "3") == 5\n',
}
WATCHED = SETTINGS.replace('"-I", "-S", ', "")
MESSAGE = "Multiply by three\n\nCallers did so by hand, each in its own way."
PASS = {"verdict": "pass", "findings": []}
ANSWERS: Mapping[str, Any] = {
    "review.3": PASS,
    "review.5": PASS,
    "review.6": {"findings": [], "score": 92, "reasoning": "Nothing was found."},
    "review.7": {"checks": [{"name": name, "verdict": "pass", "evidence": "-"} for name in ("cause", "test", "words", "scope")]},
}
Script = Callable[[str, Prompt], "str | ModelReply"]


def site_of(prompt: Prompt) -> str:
    """Return the call site of a prompt."""
    return next(part.name for part in prompt.parts if part.name.startswith("instructions")).removeprefix("instructions ")


def good(context: str, _: Prompt) -> str:
    return json.dumps(ANSWERS[context])


def answering(**answers: Any) -> Script:
    """Return other answers to some calls: review_6=… with JSON, a text, or a reply."""

    def script(context: str, prompt: Prompt) -> "str | ModelReply":
        said = answers.get(context.replace(".", "_"), ANSWERS[context])
        return said if isinstance(said, (str, ModelReply)) else json.dumps(said)

    return script


def make_gated_repository(folder: Path, **files: str) -> Path:
    return make_repository(folder, {**FILES, **files})


class Desk:
    """Somebody who changes a repository and has it reviewed."""

    def __init__(self, log: Decklog, folder: Path) -> None:
        self.log = log
        self.folder = folder
        self.repository = Repository.find(folder, folder.parent / "state")
        self.asked: list[str] = []

    def settle(self, settings: str) -> None:
        """Commit other settings to the base."""
        write(self.folder, {"decklog.toml": settings})
        git(self.folder, "commit", "-q", "-a", "-m", "Settings")

    def commit(self, files: Mapping[str, str | None], message: str = MESSAGE) -> Change:
        """Commit a change to a branch of its own; a file that is None goes."""
        git(self.folder, "checkout", "-q", "-B", "change", "main")
        write(self.folder, {name: text for name, text in files.items() if text is not None})
        for name in (name for name, text in files.items() if text is None):
            (self.folder / name).unlink()
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", message)
        return between(self.repository, "main..change")

    def commit_to_base(self, files: Mapping[str, str]) -> None:
        git(self.folder, "checkout", "-q", "main")
        write(self.folder, dict(files))
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "--allow-empty", "-m", "Before")

    def gate(self, change: Change, *, run_id: str | None = None, **given: Any) -> gate.ReviewGate:
        """Build a gate for a change, in a run of its own unless one is given."""
        run_id = run_id or self.log.runs.start("Review").id
        folder = self.folder.parent / "work"
        return gate.build_gate(self.log, change, gate.load_settings(change), folder, run_id=run_id, **given)

    def worktree(self) -> Change:
        return worktree_change(self.repository)

    def provider(self, script: Script = good) -> Callable[[object], Provider]:
        def tell(prompt: Prompt) -> "str | ModelReply":
            self.asked.append(site_of(prompt))
            return script(site_of(prompt), prompt)

        return lambda _: Scripted(tell)

    def review(self, change: Change, script: Script = good, **given: Any) -> Review:
        return gate.review(self.log, change, make=self.provider(script), **given)


def statuses(review: Review) -> str:
    """Return how the seven stages ended, by their first letters."""
    return "".join(str(one["status"])[0] for one in review.passes)  # type: ignore[index]


def kinds(review: Review, number: int | None = None) -> list[str]:
    found: list[Any] = review.findings
    return [one["kind"] for one in found if number in (None, one["pass"]) and one["severity"] != "info"]


def no_linters(_: int) -> LinterReport:
    return LinterReport()


def rules_of_stage_1(change: Change) -> StageResult:
    """Run stage 1 without checks and linters."""
    return run_static(change, ReviewSettings(digest="d"), None, no_linters)  # type: ignore[arg-type]


def rules_of_stage_4(change: Change, samples: tuple[str, ...] = ()) -> StageResult:
    """Run stage 4 without linters."""
    return run_security(change, ReviewSettings(digest="d", rules=Rules(samples=samples)), no_linters)
