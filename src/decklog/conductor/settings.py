"""The settings of a run: `decklog.toml` in the commit that it starts from, its checks, and the consent to what it loosens.

Consent is for one version of the file, by its digest, in one repository. The rules are in `loosening.toml`.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import resources
from typing import Any

from decklog.conductor.agents.description import Description, describe, known_table
from decklog.conductor.git.repository import Repository
from decklog.conductor.plan import WorkPlan
from decklog.conductor.tables import build, check_names
from decklog.core.display import DOLLAR
from decklog.core.errors import Invalid, NotAccepted, NotFound
from decklog.core.user_consents import give_consent, has_consent
from decklog.guard.policy.policy import control_files
from decklog.guard.sandbox.sandbox import SandboxKind
from decklog.provenance.settings import read_settings
from decklog.records.values import to_json
from decklog.stores.tasks.task import Task

NAME = "decklog.toml"
# Sections whose members are tables with names of their own.
_NAMED = ("agents", "models")
_CHECKS_HINT = 'Start each check with [[checks]] and give it a name, such as name = "tests".'
REPORTS = ("junit", "none")
# A person decides about changes to these: they define what is run and what passes.
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
    "budget": ("run_usd", "item_usd"),
    "roles": ("worker", "strategist"),
    "tests": ("paths",),
    "protect": ("paths",),
}
# Sections of other rooms.
_OF_OTHERS = ("models", "calls", "prompt", "review", "mend", "critique", "redaction", "provenance")
# Enough for a repository in Python.
_SMALLEST = """
  [agents.worker]
  extends = "claude-code"    # others: decklog run agents

  [roles]
  worker = ["worker"]

  [[checks]]
  name = "tests"
  command = ["python", "-m", "pytest", "-q", "--junitxml={report}"]
"""


@dataclass(frozen=True)
class LooseningRule:
    """Which values of a key are free; `loosening.toml` explains the fields."""

    effect: str = ""
    values: Sequence[object] = ()
    is_free: bool = False
    same: bool = False
    within: bool = False
    most: float | None = None

    def allows(self, value: object, base: object) -> bool:
        """Check whether a value is free, given what holds without it."""
        if self.is_free or value in self.values or (self.same and value == base):
            return True
        if self.most is not None:
            return isinstance(value, (int, float)) and not isinstance(value, bool) and value <= self.most
        return self.within and isinstance(value, list) and isinstance(base, list) and all(one in base for one in value)


_UNKNOWN = LooseningRule("is a setting with an unknown effect")


def _load_rules() -> dict[str, LooseningRule]:
    table = tomllib.loads(resources.files(__package__).joinpath("loosening.toml").read_text(encoding="utf-8"))
    free = dict.fromkeys(table["free"], LooseningRule(is_free=True))
    return {**free, **{key: LooseningRule(**rule) for key, rule in table["rules"].items()}}


RULES: Mapping[str, LooseningRule] = _load_rules()


@dataclass(frozen=True)
class Loosened:
    """One setting that loosens something: where it is in the file, its value, and what it does."""

    key: str
    value: object
    effect: str

    def line(self) -> str:
        """Describe it in one line."""
        return f"{self.key} = {self.value!r}: {self.effect}"


def loosened(table: Mapping[str, Any]) -> list[Loosened]:
    """List the settings of a parsed `decklog.toml` that need consent."""
    found: list[Loosened] = []
    for where, pattern, settings in _tables(table):
        base = _extended(settings) if pattern == "agents.*" else {}
        for name, value in settings.items():
            rule = RULES.get(f"{pattern}.{name}", _UNKNOWN)
            if not rule.allows(value, base.get(name)):
                found.append(Loosened(f"{where}.{name}", value, rule.effect))
    return found


def _tables(table: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield every table of a file, with its name and the pattern of its rules."""
    for section, content in table.items():
        if section == "checks":
            yield from ((f"checks.{one.get('name', number)}", "checks.*", one) for number, one in enumerate(content, 1))
        elif section in _NAMED:
            yield from ((f"{section}.{name}", f"{section}.*", member) for name, member in content.items())
        elif section != "calls":
            # [calls] only names models that are described elsewhere.
            yield section, section, content


def _extended(agent: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the description that an agent extends, completed by the defaults."""
    plain = Description(name="")
    defaults = {one.name: getattr(plain, one.name) for one in fields(Description)}
    lists = {name: list(value) for name, value in defaults.items() if isinstance(value, tuple)}
    return {**defaults, **lists, **known_table(str(agent.get("extends", "command")))}


def load(content: bytes) -> dict[str, Any]:
    """Parse settings. Raise Invalid for text that is not TOML and for sections of the wrong shape."""
    try:
        table = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise Invalid(f"{NAME} is not TOML: {problem}", hint="Fix it and commit it.") from problem
    for name, section in table.items():
        if name == "checks":
            _check_list(section)
        elif not isinstance(section, dict):
            raise Invalid(f"{name} in {NAME} must be a table", hint=f"Write it as [{name}].", field=name)
    for section_name in _NAMED:
        for name, member in table.get(section_name, {}).items():
            if not isinstance(member, dict):
                raise Invalid(
                    f"{section_name}.{name} in {NAME} must be a table", hint=f"Write it as [{section_name}.{name}].", field=name
                )
    return table


def _check_list(checks: object) -> None:
    if isinstance(checks, dict):
        written = ", ".join(f"[checks.{name}]" for name in checks) or "[checks]"
        raise Invalid(f"{NAME} has {written}, but checks must be a list", hint=_CHECKS_HINT, field="checks")
    if not isinstance(checks, list) or not all(isinstance(one, dict) for one in checks):
        raise Invalid(f"checks in {NAME} must be a list of tables", hint=_CHECKS_HINT, field="checks")


# Checks


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check: a command that passes or fails a tree by its exit code and, if it writes one, its report."""

    name: str
    command: tuple[str, ...]
    report: str = "none"
    gate: bool = True
    minutes: float = 10.0
    network: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The digest of the definition."""
        return hashlib.sha256(to_json(asdict(self)).encode()).hexdigest()

    def arguments(self, *, report: str, changed: Sequence[str]) -> list[str]:
        """Fill in the command; `{changed}` becomes one argument for each path."""
        words: list[str] = []
        for word in self.command:
            words += list(changed) if word == "{changed}" else [word.replace("{report}", report)]
        return words


def define_check(table: Mapping[str, Any]) -> Check:
    """Parse a check. Raise Invalid for missing and unknown settings."""
    name = table.get("name")
    if not isinstance(name, str) or not name.strip():
        raise Invalid("a check needs a name", hint='[[checks]] name = "tests"', field="name")
    check = build(Check, f"check {name}", {"command": [], **table})
    if not check.command:
        raise Invalid(f"check {name} needs a command, as a list of texts", hint='command = ["pytest", "-q"]', field="command")
    if check.report not in REPORTS:
        raise Invalid(f"check {name}: report is {check.report!r}", hint=f"Use one of {', '.join(REPORTS)}.", field="report")
    if check.report == "junit" and not any("{report}" in word for word in check.command):
        raise Invalid(f"the command of check {name} needs {{report}}", hint='"--junitxml={report}"', field="command")
    return check


# A run


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The settings of a run. `digest` is that of the file."""

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
    item_microdollars: int | None = None
    agents: Mapping[str, Description] = field(default_factory=dict)
    workers: tuple[str, ...] = ()
    strategists: tuple[str, ...] = ()
    is_plan_asked: bool = True
    is_reviewed: bool = False
    captures_edits: bool = True
    checks: tuple[Check, ...] = ()
    tests: tuple[str, ...] = TESTS
    protected: tuple[str, ...] = PROTECTED
    # Failing tests of the first commit that a person has allowed.
    known_red: frozenset[str] = frozenset()

    @property
    def gates(self) -> tuple[Check, ...]:
        """The checks that a tree must pass."""
        return tuple(check for check in self.checks if check.gate)

    def levels(self, inputs: Mapping[str, object] | None = None) -> list[Description]:
        """List the agents of a work item by escalation level: the agent named by its plan, then the other workers."""
        wanted, model = (str((inputs or {}).get(name) or "") for name in ("wanted_agent", "wanted_model"))
        names = list(dict.fromkeys((*((wanted,) if wanted in self.agents else ()), *self.workers)))
        found = [self.agents[name] for name in names]
        return [replace(found[0], model=model), *found[1:]] if model else found

    def agents_for(self, task: Task) -> list[Description]:
        """List the agents that may be started for a task: the strategists, or the workers from its escalation level on."""
        if task.role == "plan":
            return [self.agents[name] for name in self.strategists]
        levels = self.levels(task.inputs)
        return levels[min(int(str(task.inputs.get("rung", 0))), len(levels) - 1) :]

    def agent_for(self, task: Task, name: str) -> Description:
        """Return an agent by name as a task uses it, since the plan may set another model."""
        return {agent.name: agent for agent in self.agents_for(task)}.get(name, self.agents[name])

    def check_plan(self, plan: WorkPlan) -> None:
        """Raise Invalid if a plan names an unknown agent."""
        for item in plan.items:
            for name in item.agents:
                if name not in self.agents:
                    raise Invalid(
                        f"item {item.name} names the unknown agent {name!r}",
                        hint=f"Known agents: {', '.join(self.agents)}. Add it to {NAME}: [agents.{name}]",
                        field="agent",
                    )


def read(repository: Repository, commit: str) -> Configuration:
    """Read the settings of a commit. Raise NotFound if it has none, NotAccepted if consent to them is missing."""
    content = repository.read(commit, NAME)
    if content is None:
        raise NotFound(
            f"commit {commit[:12]} has no {NAME}, which sets checks and agents",
            hint=f"Add one and commit it, such as:{_SMALLEST.rstrip()}",
        )
    settings = parse(content)
    require_consent(repository, commit)
    return settings


def parse(content: bytes) -> Configuration:
    """Parse settings. Raise Invalid for an unknown name, with the closest known one."""
    table = load(content)
    check_names(NAME, table, (*_SECTIONS, "agents", "checks", *_OF_OTHERS))
    for section, names in _SECTIONS.items():
        check_names(f"[{section}]", table.get(section, {}), names)
    agents = {name: describe(name, given) for name, given in table.get("agents", {}).items()}
    run, roles = table.get("run", {}), table.get("roles", {})
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
        workers=(workers := _named("worker", roles, agents, list(agents)[:1])),
        # The last worker is the strongest. With an empty list, goals need a plan, and a person decides about stuck work items.
        strategists=() if roles.get("strategist") == [] else _named("strategist", roles, agents, list(workers[-1:])),
        is_plan_asked=_word(run, "plan", ("ask", "auto")) == "ask",
        is_reviewed="review" in table,
        captures_edits=read_settings(content).capture,
        checks=_checks(table.get("checks", [])),
        tests=tuple(table.get("tests", {}).get("paths", TESTS)),
        protected=(*PROTECTED, *table.get("protect", {}).get("paths", ())),
        **_money(table.get("budget", {})),
    )


def _whole(table: Mapping[str, Any], name: str, default: int, most: int) -> int:
    value = table.get(name, default)
    if type(value) is not int or not 1 <= value <= most:
        raise Invalid(f"{name} is {value!r}; it must be from 1 to {most}", field=name)
    return value


def _remote(run: Mapping[str, Any]) -> str | None:
    name = run.get("remote")
    if name is not None and (not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_./-]*", name)):
        raise Invalid(f"remote is {name!r}; it must be the name of a remote", hint="See: git remote", field="remote")
    return name


def sandbox_kind(word: object) -> SandboxKind:
    """Parse the name of a kind of sandbox."""
    if not isinstance(word, str) or word not in list(SandboxKind):
        raise Invalid(f"sandbox is {word!r}", hint=f"Use one of {', '.join(SandboxKind)}.", field="sandbox")
    return SandboxKind(word)


def _money(table: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, int | None] = {}
    for name in ("run", "item"):
        value = table.get(f"{name}_usd")
        if value is not None and (not isinstance(value, (int, float)) or value < 0):
            raise Invalid(f"{name}_usd is {value!r}; it must be an amount of dollars", field=f"{name}_usd")
        found[f"{name}_microdollars"] = None if value is None else round(value * DOLLAR)
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
            f"[roles] {role} needs a defined agent: {', '.join(unknown) or 'there is none'}",
            hint=f'Define one in {NAME}: [agents.mine] command = ["my-agent"]',
            field=role,
        )
    return named


def _checks(tables: Any) -> tuple[Check, ...]:
    if not tables:
        raise Invalid(f"{NAME} defines no check", hint="Add one as [[checks]].", field="checks")
    checks = tuple(define_check(table) for table in tables)
    names = [check.name for check in checks]
    if len(set(names)) < len(names):
        raise Invalid("two checks have the same name", hint="Give each its own.", field="checks")
    if not any(check.gate for check in checks):
        raise Invalid("no check is required, so any change would land", hint="Set gate = true on one.", field="checks")
    return checks


# Consent


@dataclass(frozen=True)
class LooseningRequest:
    """The loosening settings of a commit, and whether this user consented to them."""

    commit: str
    digest: str
    settings: Sequence[Loosened]
    is_given: bool


def consent_request(repository: Repository, commit: str) -> LooseningRequest:
    """Return the loosening settings of a commit."""
    content = repository.read(commit, NAME) or b""
    digest = hashlib.sha256(content).hexdigest()
    settings = loosened(load(content))
    return LooseningRequest(commit, digest, settings, bool(settings) and has_consent(str(repository.common), digest))


def require_consent(repository: Repository, commit: str) -> None:
    """Raise NotAccepted if the settings of a commit loosen something that this user did not consent to.

    Call it before anything that the settings name is run.
    """
    request = consent_request(repository, commit)
    if request.settings and not request.is_given:
        raise NotAccepted(
            f"{NAME} of commit {commit[:12]} weakens your protection: {'; '.join(one.line() for one in request.settings)}",
            hint=f"If you trust it, consent in a terminal: decklog accept --settings --commit {commit[:12]}",
            commit=commit,
            digest=request.digest,
            settings=[one.key for one in request.settings],
        )


def record_consent(repository: Repository, request: LooseningRequest) -> None:
    """Record the consent of this user."""
    give_consent(str(repository.common), request.digest)
