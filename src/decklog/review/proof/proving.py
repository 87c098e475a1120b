"""Prove a fix by its test, which must fail without it, pass with it, and run changed lines."""

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from decklog.conductor.checks.examination import Examiner
from decklog.conductor.checks.running import Runner
from decklog.guard.files.gitignore import IgnoreFile
from decklog.log import Decklog
from decklog.review.change import Change
from decklog.review.proof.judging import Facts, FixProof, Refusal, judge, refused
from decklog.review.proof.lines import changed_lines
from decklog.review.proof.trials import TIMES, TrialSeries, Watched
from decklog.review.settings import ReviewSettings

_TEST = re.compile(rb"(?m)^\s*(?:async\s+)?def\s+(test\w*)")
_DOCUMENTS = frozenset((".md", ".rst", ".txt", ".toml", ".json", ".yaml", ".yml", ".ini", ".cfg", ""))


class Proving:
    """Proves changes of one repository by its checks."""

    def __init__(self, log: Decklog, settings: ReviewSettings, runner: Runner, run_id: str, say: Callable[[str], object]) -> None:
        self._log, self._settings, self._runner, self._run_id, self._say = log, settings, runner, run_id, say
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
        python = [path for path in others if path.endswith(".py")]
        added, removed = changed_lines(change, python)
        alone = self._examiner.with_files_of(change.head, change.base, tests)
        names = frozenset(name.decode() for path in tests for name in _TEST.findall(change.content(path) or b""))
        facts = Facts(names, bool(python), all(PurePosixPath(path).suffix in _DOCUMENTS for path in others))
        sides = [
            TrialSeries(self._log, self._run_id, self._runner, check, commit, Watched(tests, lines, others), paths, where)
            for commit, lines, where in ((alone, removed, "without"), (change.head, added, "with"))
        ]
        first = judge(facts, *(side.run(1, self._say) for side in sides))
        # A refusal is final; one more run finds what differs from run to run.
        return judge(facts, *(side.run(TIMES if first.is_given else TIMES - 1, self._say) for side in sides))
