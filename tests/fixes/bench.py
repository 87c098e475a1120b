"""Somebody who has faults mended: commits fixes by hand, and has models and agents follow a script."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import mending_faults
from benchmarks.mending_faults import Fault, files

from decklog import Decklog, Mend
from decklog.conductor.checks.running import Runner
from decklog.conductor.git.repository import Repository
from decklog.fixes.loop import FixInput, FixLoop
from decklog.guard.sandbox.sandbox import SandboxKind
from decklog.models.composer import Prompt
from decklog.models.provider import ModelReply, Provider
from decklog.models.providers.making import Scripted
from decklog.review.change import Change, between
from decklog.review.gate import load_settings
from decklog.review.proof.judging import FixProof
from decklog.review.proof.proving import Proving
from tests.conductor.repositories import git, make_repository, write
from tests.conductor.scripts import COMMAND
from tests.review.changes import ANSWERS, Script, site_of

SETTINGS = f"""
[run]
sandbox = "none"
rounds = 1
attempts = 1
[agents.fake]
command = {json.dumps(COMMAND)}
commits = "conductor"
[models.mine]
provider = "scripted"
script = "unused.json"
[calls]
review = "mine"
mend = "mine"
[review]
base = "main"
measure_seconds = 0
"""
TRIAGE: Mapping[str, Any] = {
    "fix_class": "tool",
    "root_cause": "The wrong expression is returned.",
    "proposed_change": "Return the right one.",
    "test_sketch": "Call it and compare.",
    "success_criterion": "The call gives what it should.",
    "candidate_files": [],
    "confidence": 90,
}


def make_faulty_repository(folder: Path) -> Path:
    return make_repository(folder, mending_faults.package(SETTINGS))


def answering(**answers: Any) -> Script:
    """Answer every call as a good model would, and some otherwise: mend_triage=… with JSON, a text, or a reply."""

    def script(site: str, _: Prompt) -> "str | ModelReply":
        answer = answers.get(site.replace(".", "_"), TRIAGE if site == "mend.triage" else ANSWERS.get(site))
        return answer if isinstance(answer, (str, ModelReply)) else json.dumps(answer)

    return script


class Bench:
    """One repository with faults, and a log."""

    def __init__(self, log: Decklog, folder: Path, script: Script | None = None) -> None:
        self.log = log
        self.folder = folder
        self.state = folder.parent / "state"
        self.repository = Repository.find(folder, self.state)
        self.script = script or answering()
        self.called_sites: list[str] = []

    def commit(self, branch: str, files: Mapping[str, str | None], message: str = "Mend it") -> Change:
        """Commit a change to a branch that begins with main; the branch that is checked out afterwards is main."""
        git(self.folder, "checkout", "-q", "-B", branch, "main")
        write(self.folder, {name: text for name, text in files.items() if text is not None})
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", message)
        git(self.folder, "checkout", "-q", "main")
        return between(self.repository, f"main..{branch}")

    def settle(self, change: Callable[[str], str]) -> None:
        """Commit other settings to the base."""
        path = self.folder / "decklog.toml"
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
        git(self.folder, "commit", "-q", "-a", "-m", "Settings")

    # Mending

    @property
    def mending(self) -> FixLoop:
        def reply(prompt: Prompt) -> "str | ModelReply":
            self.called_sites.append(site_of(prompt))
            return self.script(site_of(prompt), prompt)

        def make(_: object) -> Provider:
            return Scripted(reply)

        return FixLoop(log=self.log, cwd=self.folder, state=self.state, make=make)

    def file(self, body: str, **given: Any) -> str:
        return self.log.feedback.file("ana", body, **given).id

    def mend(self, feedback_id: str, **given: Any) -> Mend:
        """Take the mend of feedback on as far as it goes."""
        mending = self.mending
        return mending.advance(mending.find_or_begin(feedback_id).id, FixInput(**given))

    def merge(self, branch: str) -> None:
        """Do what a person does with a branch that was published."""
        git(self.folder, "merge", "-q", "--no-edit", branch)

    def prove(self, change: Change) -> FixProof:
        run_id = self.log.runs.start("Prove").id
        runner = Runner(
            repository=self.repository,
            person=self.repository.person(),
            sandbox=SandboxKind.NONE,
            log_file=None,
            folder=self.state / "trials",
        )
        return Proving(self.log, load_settings(change), runner, run_id, lambda _: None).prove(change)


def scripted(fault: Fault, kind: str, counter: Path) -> str:
    """Describe a fault, with a script by which the agent fixes it and adds a kind of test."""
    steps = [["write", name, text] for name, text in files(fault, kind, counter).items()]
    return f"{fault.said}\nSCRIPT {json.dumps(steps)}"
