"""The settings of a run, read from `decklog.toml` in the commit that it starts from."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from decklog.conductor.agents.description import Description, describe
from decklog.conductor.git.repository import Repository
from decklog.conductor.settings import consent
from decklog.conductor.settings.check import Check, define
from decklog.conductor.settings.document import NAME, load
from decklog.core.errors import Invalid, NotFound
from decklog.guard.policy.policy import control_files
from decklog.guard.sandbox.sandbox import SandboxKind
from decklog.provenance.settings import read_settings

if TYPE_CHECKING:
    from decklog.conductor.settings.plan import WorkPlan
    from decklog.stores.tasks.task import Task

# Whoever changes one of these changes what is run, or what counts as good: a person decides.
PROTECTED = (
    *control_files(),
    *("/decklog.toml", "/.github/", "/.gitlab-ci.yml", ".claude/", ".codex/", ".mcp.json", "AGENTS.md", "CLAUDE.md"),
    *("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "pytest.ini", ".pytest.ini", "conftest.py", "noxfile.py", "Makefile"),
    *("sitecustomize.py", "usercustomize.py", "*.pth", "pytest.py", "_pytest/", "pytest_*.py", "unittest.py", "/unittest/"),
    *("package.json", "jest.config.*", "vitest.config.*", ".gitattributes", ".coveragerc"),
)
TESTS = ("/tests/", "/test/", "test_*.py", "*_test.py", "*.test.ts", "*.test.js", "*_test.go")
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "run": ("agents", "orphan_seconds", "rounds", "attempts", "sandbox", "free_mb", "plan", "remote", "lease_seconds"),
    "budget": ("run_usd", "piece_usd"),
    "roles": ("worker", "strategist"),
    "tests": ("paths",),
    "protect": ("paths",),
}
# What others read in the same file: models and who asks them, prompts, the review of changes, the mending of feedback, redaction.
_OF_OTHERS = ("models", "calls", "prompt", "review", "mend", "critique", "redaction", "provenance")
# Enough for a repository in Python, and what others change is easy to see.
_SMALLEST = """
  [agents.worker]
  extends = "claude-code"    # others: decklog run agents

  [roles]
  worker = ["worker"]

  [[checks]]
  name = "tests"
  command = ["python", "-m", "pytest", "-q", "--junitxml={report}"]
"""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What a run is done with. `digest` names the file that said so."""

    digest: str
    agents_at_once: int = 4
    orphan_seconds: float = 60.0
    rounds: int = 3
    attempts: int = 3
    sandbox: SandboxKind = SandboxKind.AUTO
    free_megabytes: int = 200
    remote: str | None = None
    lease_seconds: float = 60.0
    run_microdollars: int | None = None
    piece_microdollars: int | None = None
    agents: Mapping[str, Description] = field(default_factory=dict)
    workers: tuple[str, ...] = ()
    strategists: tuple[str, ...] = ()
    is_plan_asked: bool = True
    is_reviewed: bool = False
    captures_edits: bool = True
    checks: tuple[Check, ...] = ()
    tests: tuple[str, ...] = TESTS
    protected: tuple[str, ...] = PROTECTED
    # Tests that were red when the run began, which a person has allowed to stay so.
    known_red: frozenset[str] = frozenset()

    @property
    def gates(self) -> tuple[Check, ...]:
        """The checks that a tree must pass."""
        return tuple(check for check in self.checks if check.gate)

    def ladder(self, inputs: Mapping[str, object] | None = None) -> list[Description]:
        """List the agents that work on a piece, one after the other: those that its plan names first, then the other workers."""
        wanted, model = (str((inputs or {}).get(name) or "") for name in ("wanted_agent", "wanted_model"))
        names = list(dict.fromkeys((*((wanted,) if wanted in self.agents else ()), *self.workers)))
        found = [self.agents[name] for name in names]
        return [replace(found[0], model=model), *found[1:]] if model else found

    def agents_for(self, task: "Task") -> list[Description]:
        """List the agents that may be started for a task: those who plan, or those who work from its rung on."""
        if task.role == "plan":
            return [self.agents[name] for name in self.strategists]
        ladder = self.ladder(task.inputs)
        return ladder[min(int(str(task.inputs.get("rung", 0))), len(ladder) - 1) :]

    def check_plan(self, plan: "WorkPlan") -> None:
        """Refuse a plan whose pieces name agents that are not described."""
        for piece in plan.pieces:
            for name in piece.agents:
                if name not in self.agents:
                    raise Invalid(
                        f"piece {piece.name} names the agent {name!r}, which is not described",
                        hint=f"There are {', '.join(self.agents)}. Describe it in {NAME}: [agents.{name}]",
                        field="agent",
                    )


def read(repository: Repository, commit: str) -> Configuration:
    """Read the settings that a commit has. Refuse a commit without any, and what loosens without this user's consent."""
    content = repository.read(commit, NAME)
    if content is None:
        raise NotFound(
            f"commit {commit[:12]} has no {NAME}, which says how to check a change and who works",
            hint=f"Add one and commit it, such as:{_SMALLEST.rstrip()}",
        )
    settings = parse(content)
    consent.require(repository, commit)
    return settings


def parse(content: bytes) -> Configuration:
    """Read settings; an unknown name is refused with the nearest that there is."""
    table = load(content)
    _check_names(NAME, table, (*_SECTIONS, "agents", "checks", *_OF_OTHERS))
    for section, names in _SECTIONS.items():
        _check_names(f"[{section}]", table.get(section, {}), names)
    agents = {name: describe(name, given) for name, given in table.get("agents", {}).items()}
    run = table.get("run", {})
    return Configuration(
        digest=hashlib.sha256(content).hexdigest(),
        agents_at_once=_whole(run, "agents", 4, 256),
        orphan_seconds=float(run.get("orphan_seconds", 60.0)),
        rounds=_whole(run, "rounds", 3, 20),
        attempts=_whole(run, "attempts", 3, 20),
        sandbox=sandbox_kind(run.get("sandbox", "auto")),
        free_megabytes=_whole(run, "free_mb", 200, 10**9),
        remote=_remote(run),
        lease_seconds=float(_whole(run, "lease_seconds", 60, 3600)),
        agents=agents,
        workers=(workers := _named("worker", table.get("roles", {}), agents, list(agents)[:1])),
        # The last of the ladder is the strongest that there is.
        strategists=_strategists(table.get("roles", {}), agents, list(workers[-1:])),
        is_plan_asked=_word(run, "plan", ("ask", "auto")) == "ask",
        is_reviewed="review" in table,
        captures_edits=read_settings(content).capture,
        checks=_checks(table.get("checks", [])),
        tests=tuple(table.get("tests", {}).get("paths", TESTS)),
        protected=(*PROTECTED, *table.get("protect", {}).get("paths", ())),
        **_money(table.get("budget", {})),
    )


def _check_names(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in table:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
            raise Invalid(f"{where} has no {name!r}", hint=hint, field=name)


def _whole(table: Mapping[str, Any], name: str, default: int, most: int) -> int:
    value = table.get(name, default)
    if type(value) is not int or not 1 <= value <= most:
        raise Invalid(f"{name} is {value!r}; it goes from 1 to {most}", field=name)
    return value


def _remote(run: Mapping[str, Any]) -> str | None:
    name = run.get("remote")
    if name is not None and (not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_./-]*", name)):
        raise Invalid(f"remote is {name!r}; it is the name of a remote", hint="See: git remote", field="remote")
    return name


def sandbox_kind(word: object) -> SandboxKind:
    """Parse the name of a kind of sandbox."""
    if not isinstance(word, str) or word not in list(SandboxKind):
        raise Invalid(f"sandbox is {word!r}", hint=f"Use one of {', '.join(SandboxKind)}.", field="sandbox")
    return SandboxKind(word)


def _money(table: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, int | None] = {}
    for name in ("run", "piece"):
        value = table.get(f"{name}_usd")
        if value is not None and (not isinstance(value, (int, float)) or value < 0):
            raise Invalid(f"{name}_usd is {value!r}; it is an amount of dollars", field=f"{name}_usd")
        found[f"{name}_microdollars"] = None if value is None else round(value * 1_000_000)
    return found


def _word(table: Mapping[str, Any], name: str, words: tuple[str, ...]) -> str:
    value = table.get(name, words[0])
    if value not in words:
        raise Invalid(f"{name} is {value!r}", hint=f"Use one of {', '.join(words)}.", field=name)
    return str(value)


def _named(role: str, roles: Mapping[str, Any], agents: Mapping[str, Description], otherwise: Sequence[str]) -> tuple[str, ...]:
    named = tuple(roles.get(role, otherwise))
    unknown = [name for name in named if name not in agents]
    if unknown or not named:
        raise Invalid(
            f"no agent is a {role}: {', '.join(unknown) or 'none is described'}",
            hint=f'Describe one in {NAME}: [agents.mine] command = ["my-agent"]',
            field=role,
        )
    return named


def _strategists(roles: Mapping[str, Any], agents: Mapping[str, Description], otherwise: Sequence[str]) -> tuple[str, ...]:
    """Name who plans. Nobody does where the list is empty: goals need a plan, and what is stuck is a person's at once."""
    return () if roles.get("strategist") == [] else _named("strategist", roles, agents, otherwise)


def _checks(tables: Any) -> tuple[Check, ...]:
    if not tables:
        raise Invalid(f"{NAME} defines no check, so nothing could be found good", hint="Write one as [[checks]].", field="checks")
    checks = tuple(define(table) for table in tables)
    names = [check.name for check in checks]
    if len(set(names)) < len(names):
        raise Invalid("two checks have the same name", hint="Give each its own.", field="checks")
    if not any(check.gate for check in checks):
        raise Invalid("no check is a gate, so anything would land", hint="Set gate = true on one.", field="checks")
    return checks
