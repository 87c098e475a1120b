"""Trials that are on record: whoever goes on after a kill runs only those that are missing."""

import hashlib
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from decklog.conductor.checks.examination import environment_digest
from decklog.conductor.checks.running import Runner, Said
from decklog.conductor.settings.check import Check
from decklog.records.values import to_json
from decklog.review.proof.trials import Failure, Seen, Trial, Watched
from decklog.stores.workflow.verdicts import CheckOutcome

if TYPE_CHECKING:
    from decklog.log import Decklog

_KIND = "proof-trial"


class KeptTrials:
    """Keeps the trials of one run of a check on one tree, each under its number."""

    def __init__(self, log: "Decklog", run_id: str, runner: Runner, check: Check, tree: str, watched: Watched) -> None:
        self._log = log
        self._run_id = run_id
        facts = [check.digest, tree, asdict(watched), environment_digest(runner)]
        self._name = f"proofs/trials/{tree}-{hashlib.sha256(to_json(facts).encode()).hexdigest()[:16]}"

    def get(self, number: int) -> Trial | None:
        """Give what a trial came to; one that is not on record is null."""
        found = self._log.artifacts.find(self._run_id, path=self._path(number), limit=1)
        return _read(json.loads(self._log.artifacts.content_bytes(found[0].id))) if found else None

    def keep(self, number: int, trial: Trial) -> None:
        """Keep a trial, unless it could not say anything: the next one may."""
        if trial.said.outcome is not CheckOutcome.ERROR:
            content = to_json(asdict(replace(trial, said=replace(trial.said, output=trial.said.output[-1000:]))))
            self._log.artifacts.add(self._run_id, _KIND, self._path(number), content=content)

    def _path(self, number: int) -> str:
        return f"{self._name}-{number}.json"


def _read(told: Any) -> Trial:
    said = Said(**{**told["said"], "outcome": CheckOutcome(told["said"]["outcome"])})
    failures = {name: Failure(**one) for name, one in told["failures"].items()}
    return Trial(said, failures, tuple(Seen(**{**one, "read": tuple(one["read"])}) for one in told["seen"]))
