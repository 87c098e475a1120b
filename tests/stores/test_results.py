"""Verbs that return no record return dictionaries whose keys and types are declared, and are what they declare."""

import ast
import pkgutil
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, is_typeddict

import pytest

import decklog
from decklog import Decklog
from decklog.journal import rows
from decklog.records.operations import Operation
from decklog.stores import results
from tests.async_types import answer_of, nodes_of, plain_annotation
from tests.registry import operations
from tests.stores.claiming import claimed
from tests.stores.typed_values import differences

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
MODULES = [rows, *(import_module(f"{results.__name__}.{module.name}") for module in pkgutil.iter_modules(results.__path__))]
TYPES = {name: kind for module in MODULES for name, kind in vars(module).items() if is_typeddict(kind)}
# One call of every verb with such a result, on the log of `busy`.
CALLS: dict[str, Callable[[Decklog], object]] = {
    "journal.heads": lambda log: log.journal.heads(),
    "journal.since": lambda log: log.journal.since("[0,{}]"),
    "runs.activity": lambda log: log.runs.activity("run_1"),
    "runs.lanes": lambda log: log.runs.lanes("run_1"),
    "runs.diff": lambda log: log.runs.diff("run_1:2", "run_1"),
    "tasks.details": lambda log: log.tasks.details("whole"),
    "tasks.why_none": lambda log: log.tasks.why_none("run_1"),
    "tasks.ready": lambda log: log.tasks.ready("run_1"),
    "tasks.subtasks": lambda log: log.tasks.subtasks("whole"),
    "tasks.why": lambda log: log.tasks.why("later"),
    "approvals.show": lambda log: log.approvals.show(log.approvals.find("run_1")[0].id),
    "approvals.abouts": lambda log: log.approvals.abouts([log.approvals.find("run_1")[0].id]),
    "states.diff": lambda log: log.states.diff("run_1", "plan", 1, 2),
    "states.record_investigation": lambda log: log.states.record_investigation("run_1", "g", 1, "under_investigation", {}, {}),
    "artifacts.content": lambda log: log.artifacts.content("file"),
    "outputs.check_evidence": lambda log: log.outputs.check_evidence("run_1", ["lint"]),
    "budgets.burn": lambda log: log.budgets.burn(),
    "budgets.check": lambda log: log.budgets.check(),
    "budgets.rebuild": lambda log: log.budgets.rebuild(),
    "ledger.summary": lambda log: log.ledger.summary("run_1"),
    "memory.topics": lambda log: log.memory.topics(),
    "memory.health": lambda log: log.memory.health(),
    "learnings.take_over": lambda log: log.learnings.take_over("no such line\n", tolerant=True),
    "context.rank": lambda log: log.context.rank("run_1", "developer"),
    "trust.show": lambda log: log.trust.show(),
    "trust.status": lambda log: log.trust.status(),
    "trust.explain": lambda log: log.trust.explain(2),
    "trust.may": lambda log: log.trust.may("edit_file"),
    "trust.permit": lambda log: log.trust.permit(log.trust.explain(0)["may"][0]),
    "workflow.route": lambda log: log.workflow.route("developer", "READY_FOR_QA"),
    "workflow.check_prompt": lambda log: log.workflow.check_prompt("developer", "a prompt"),
    "workflow.ready": lambda log: log.workflow.ready(),
    "ci.expected": lambda log: log.ci.expected("tests", "main"),
    "overview.task": lambda log: log.overview.task("whole"),
    "overview.words": lambda log: log.overview.words(run_ids=["run_1"], task_ids=["whole"]),
    "overview.days": lambda log: log.overview.days(by="model"),
    "overview.stations": lambda log: log.overview.stations(),
    "overview.ended": lambda log: log.overview.ended(LONG_AGO),
    "overview.failed_tasks": lambda log: log.overview.failed_tasks(LONG_AGO),
}


def returned(operation: Operation) -> str:
    (text,) = {answer_of(plain_annotation(node.returns), operation) for node in nodes_of(operation)[:1]}
    return text


def taken(operation: Operation) -> list[str]:
    parts = [part for node in nodes_of(operation) for part in (*node.args.args, *node.args.kwonlyargs)]
    return [ast.unparse(plain_annotation(part.annotation)) for part in parts if part.annotation is not None]


def names_in(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)}


def verbs_with_results() -> dict[str, str]:
    found = {f"{store}.{operation.name}": returned(operation) for store, operation in operations()}
    return {verb: text for verb, text in found.items() if names_in(text) & TYPES.keys()}


def busy(log: Decklog) -> None:
    """Write something of every kind that the verbs look at."""
    log.runs.start("Make the parser faster", run_id="run_1")
    log.tasks.add("run_1", "Whole", task_id="whole")
    log.tasks.add("run_1", "Part", task_id="part", parent_id="whole", role="developer", max_attempts=1)
    log.tasks.add("run_1", "Later", task_id="later", depends_on=["part"])
    log.tasks.comment("whole", "Begin with the lexer.", author="ada")
    claim = claimed(log, "run_1", worker="w1", task_id="part")
    log.tasks.fail("part", fence=claim.fence, blocker="no compiler")
    log.approvals.ask("run_1", "May I?", by="w1", about="rm -r build", subject="clean", payload={"rule": "deletes", "tier": 1})
    log.states.save("run_1", "plan", {"steps": 1, "old": True})
    log.states.save("run_1", "plan", {"steps": 2, "new": True})
    log.artifacts.add("run_1", "log", "build.log", content="all well", artifact_id="file")
    log.outputs.save("run_1", "lint", {"errors": 0})
    log.budgets.set("all", limit_microdollars=1_000_000)
    log.ledger.charge("some-model", input_tokens=10, output_tokens=5, cost_microdollars=7, run_id="run_1")
    log.memory.remember("flaky_tests", "The lexer is generated; edit the grammar.")
    log.context.save("run_1", "research", "notes.md", "developer", "What was found", consumers=["developer"])
    log.ci.record("tests", "main", 1, duration_seconds=90, conclusion="success")
    log.runs.start("Another", run_id="run_2")
    log.runs.finish("run_2", summary="done")


@pytest.mark.slow
def test_no_verb_returns_a_dictionary_of_unknown_keys() -> None:
    found = {f"{store}.{operation.name}": returned(operation) for store, operation in operations()}
    assert {verb: text for verb, text in found.items() if "dict[str, Any]" in text or "dict[str, object]" in text} == {}


@pytest.mark.slow
def test_no_verb_takes_a_value_of_any_type() -> None:
    """A user's own JSON is `object` or `dict[str, object]`."""
    found = {f"{store}.{operation.name}": taken(operation) for store, operation in operations()}
    assert {verb: kinds for verb, kinds in found.items() if any("Any" in names_in(kind) for kind in kinds)} == {}


@pytest.mark.slow
def test_every_result_type_of_a_verb_is_exported() -> None:
    named = {name for text in verbs_with_results().values() for name in names_in(text) & TYPES.keys()}
    assert {name for name in named if getattr(decklog, name, None) is not TYPES[name]} == set()


@pytest.mark.slow
def test_every_verb_with_a_declared_result_is_called_here() -> None:
    assert set(CALLS) == set(verbs_with_results())


@pytest.mark.slow
def test_every_result_has_the_keys_and_types_that_are_declared(log: Decklog) -> None:
    busy(log)
    kinds: dict[str, Any] = {verb: eval(text, {**TYPES}) for verb, text in verbs_with_results().items()}
    found = {verb: (call(log), kinds[verb]) for verb, call in CALLS.items()}
    assert {verb: wrong for verb, (value, kind) in found.items() if (wrong := list(differences(value, kind, verb)))} == {}
    assert {verb for verb, (value, _) in found.items() if not value} == set()


def test_a_wrong_or_missing_key_is_noticed() -> None:
    kind = TYPES["StreamHead"]
    assert list(differences({"stream": "run_1", "seq": 1, "hash": "ab"}, kind)) == []
    assert list(differences({"stream": "run_1", "seq": "1", "hash": "ab"}, kind))
    assert list(differences({"stream": "run_1", "seq": 1}, kind))
    assert list(differences({"stream": "run_1", "seq": 1, "hash": "ab", "more": 1}, kind))
