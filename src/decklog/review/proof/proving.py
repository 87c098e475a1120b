"""Proves a fix by its test: it fails without the fix, passes with it, and runs what the fix changes."""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.checks.running import Runner
from decklog.conductor.settings import Check
from decklog.guard.files.gitignore import IgnoreFile
from decklog.log import Decklog
from decklog.review.change import Change
from decklog.review.proof.judging import Facts, FixProof, Refusal, judge, refused
from decklog.review.proof.lines import changed_lines
from decklog.review.proof.trials import StoredTrials, Trial, Watched, run_trial
from decklog.review.settings import ReviewSettings
from decklog.stores.workflow.verdicts import CheckOutcome

TIMES = 3
_TEST = re.compile(rb"(?m)^\s*(?:async\s+)?def\s+(test\w*)")
_DOCUMENTS = frozenset((".md", ".rst", ".txt", ".toml", ".json", ".yaml", ".yml", ".ini", ".cfg", ""))


class Proving:
    """Proves changes of one repository by its checks."""

    def __init__(self, log: Decklog, settings: ReviewSettings, runner: Runner, run_id: str, say: Callable[[str], object]) -> None:
        self.log = log
        self._settings = settings
        self.runner = runner
        self.run_id = run_id
        self.say = say
        self._tests = IgnoreFile(settings.tests)
        self._examiner = Examiner(log, run_id, settings.configuration(()), runner, task_id=None)

    def prove(self, change: Change) -> FixProof:
        """Prove a change, or return the class of reason why it is not proven."""
        paths = [one.path for one in change.paths if one.status != "D"]
        tests = [path for path in paths if self._tests.covers(path)]
        others = [one.path for one in change.paths if not self._tests.covers(one.path)]
        check = next((one for one in self._settings.functional_checks if one.report == "junit"), None)
        if check is None:
            return refused(Refusal.NO_CHECK)
        if not tests:
            return refused(Refusal.NO_TEST, "the change has no test")
        if not others:
            return refused(Refusal.TESTS_ONLY)
        return self._run_trials(change, check, tests, others)

    def _run_trials(self, change: Change, check: Check, tests: Sequence[str], others: Sequence[str]) -> FixProof:
        python = [path for path in others if path.endswith(".py")]
        added, removed = changed_lines(change, python)
        alone = self._examiner.with_files_of(change.head, change.base, tests)
        facts = Facts(
            names=frozenset(name for path in tests for name in _names(change.content(path))),
            python=bool(python),
            documents=all(PurePosixPath(path).suffix in _DOCUMENTS for path in others),
        )
        changed = [one.path for one in change.paths if one.status != "D"]
        sides = (
            _Side(self, check, alone, Watched(tests, removed, others), changed, "without"),
            _Side(self, check, change.head, Watched(tests, added, others), changed, "with"),
        )
        first = judge(facts, *(side.trials(1) for side in sides))
        # A refusal is final; one more run finds what differs from run to run.
        return judge(facts, *(side.trials(TIMES if first.is_given else TIMES - 1) for side in sides))


class _Side:
    """The trials of one check on one commit, with the fix or without it; they run when needed and are stored."""

    def __init__(self, proving: Proving, check: Check, commit: str, watched: Watched, changed: Sequence[str], where: str) -> None:
        self._runner, self._run_id, self._say = proving.runner, proving.run_id, proving.say
        self._check, self._commit, self._watched, self._changed, self._where = check, commit, watched, changed, where
        tree = self._runner.repository.tree(commit)
        self._stored = StoredTrials(proving.log, self._run_id, self._runner, check, tree, watched)
        self._found: list[Trial] = []

    def trials(self, count: int) -> list[Trial]:
        """Return a number of trials, fewer after one that could not run its tests at all."""
        while len(self._found) < count and not any(one.said.outcome is CheckOutcome.ERROR for one in self._found):
            self._found.append(self._trial(len(self._found) + 1))
        return self._found

    def _trial(self, number: int) -> Trial:
        mark = f"{self._run_id}:proof:{self._where}:{self._commit[:12]}:{number}"
        if (trial := self._stored.get(number)) is None:
            trial = run_trial(self._runner, self._check, self._commit, mark, self._watched, self._changed)
            self._stored.add(number, trial)
        self._say(f"{self._where} the fix, run {number} of {TIMES}: {trial.said.outcome}")
        return trial


def _names(content: bytes | None) -> list[str]:
    return [name.decode() for name in _TEST.findall(content or b"")]
