"""Run the installed linters of `linters.toml` in the sandbox of the checks, and report results that are new in a change."""

import configparser
import json
import os
import posixpath
import re
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from decklog.conductor.checks.running import Runner
from decklog.conductor.git.changes import LINK, SUBMODULE
from decklog.conductor.settings import Check
from decklog.guard.files.gitignore import IgnoreFile
from decklog.review.change import Change
from decklog.review.result import Finding, Severity
from decklog.review.settings import ReviewSettings
from decklog.stores.workflow.verdicts import CheckOutcome

LARGEST_REPORT = 64 * 1024 * 1024


class UnreadableReport(ValueError):
    """Raised for a report that is missing, too large or malformed."""


@dataclass(frozen=True)
class Result:
    """One result of a linter. `file` is relative to the root; `first` and `last` are lines."""

    rule: str
    level: str
    message: str
    file: str | None = None
    first: int | None = None
    last: int | None = None


def read_report(
    content: bytes, form: str, root: str, *, results: str = "", fields: Mapping[str, str] | None = None
) -> list[Result]:
    """Return the results of a report; raise Unreadable for one that can't be read completely."""
    try:
        text = content.decode()
        if form == "json-lines":
            rows = [json.loads(line) for line in text.splitlines() if line.strip()]
            return [_mapped(row, fields or {}, root) for row in rows]
        document = json.loads(text)
        if form == "json":
            return [_mapped(row, fields or {}, root) for row in _walk(document, results.split("."), {})]
        return [result for run in document["runs"] for result in _read_run(run, root)]
    except UnreadableReport:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as problem:
        raise UnreadableReport(f"its report can't be read: {problem!r}"[:200]) from problem


# SARIF


def _read_run(run: Mapping[str, Any], root: str) -> Iterator[Result]:
    for invocation in run.get("invocations") or ():
        notes = [*(invocation.get("toolExecutionNotifications") or ()), *(invocation.get("toolConfigurationNotifications") or ())]
        failed = [_message(note["message"]) for note in notes if note.get("level") == "error"]
        if failed or invocation.get("executionSuccessful") is False:
            raise UnreadableReport(f"it reports a failed run: {'; '.join(failed)}"[:300])
    driver = run["tool"]["driver"]
    levels = {rule["id"]: rule.get("defaultConfiguration", {}).get("level") for rule in driver.get("rules") or ()}
    for one in run["results"]:
        if one.get("kind", "fail") not in ("fail", "review", "open"):
            continue
        # Results about a whole file, and syntax errors, may have no rule.
        rule = one.get("ruleId") or one.get("rule", {}).get("id") or "error"
        level = one.get("level") or levels.get(rule) or "warning"
        yield Result(rule, level, _message(one["message"]), *_location(one, root))


def _message(message: Mapping[str, Any]) -> str:
    return str(message.get("text") or message.get("markdown") or message.get("id") or "")


def _location(one: Mapping[str, Any], root: str) -> tuple[str | None, int | None, int | None]:
    locations: Sequence[Mapping[str, Any]] = one.get("locations") or ()
    place = locations[0].get("physicalLocation") if locations else None
    if not place:
        return None, None, None
    region = place.get("region") or {}
    first = region.get("startLine")
    uri = str(place["artifactLocation"]["uri"])
    path = unquote(urlsplit(uri).path if uri.startswith("file:") else uri)
    return _relative(path, root), first, region.get("endLine") or first


def _relative(path: str, root: str) -> str:
    """Return a path from the root."""
    return posixpath.normpath(path.removeprefix(root.rstrip("/") + "/"))


# JSON


def _walk(value: Any, steps: Sequence[str], above: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects at a path such as `*.messages.*`, each with the plain fields of those above it."""
    if isinstance(value, Mapping):
        above = {**above, **{name: one for name, one in value.items() if not isinstance(one, (list, dict))}}
    if not steps:
        if not isinstance(value, Mapping):
            raise TypeError("a result is not an object")
        yield {**above, **value}
    elif steps[0] == "*":
        if not isinstance(value, list):
            raise TypeError("the results are not a list")
        for one in value:
            yield from _walk(one, steps[1:], above)
    else:
        yield from _walk(value[steps[0]], steps[1:], above)


def _mapped(row: Mapping[str, Any], fields: Mapping[str, str], root: str) -> Result:
    line = row.get(fields["line"])
    number = line if isinstance(line, int) and line > 0 else None
    rule = str(row.get(fields["rule"]) or "error")
    return Result(
        rule, str(row[fields["level"]]), str(row[fields["message"]]), _relative(str(row[fields["file"]]), root), number, number
    )


MINUTES = 10.0
_MOST_FINDINGS = 200
_NUMBER = re.compile(r"\d+")
_WORST_FIRST = list(Severity)


@dataclass(frozen=True, kw_only=True)
class LinterTool:
    """One row of the table; its head explains the fields."""

    name: str
    stage: int
    program: str
    files: tuple[str, ...]
    command: tuple[str, ...]
    exit_codes: tuple[int, ...]
    format: str
    severity: Mapping[str, str]
    config: tuple[str, ...] = ()
    with_config: tuple[str, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    results: str = ""
    needs_config: bool = False
    expected: tuple[str, ...] = ()
    required: bool = False
    compare: bool = False
    lenient_in_tests: bool = False
    unless: str = ""

    @cached_property
    def config_files(self) -> IgnoreFile:
        return IgnoreFile(tuple(one.partition("#")[0] for one in self.config))

    def command_for(self, program: str, config: str | None) -> tuple[str, ...]:
        """Return the command with the program and the configuration filled in."""
        named = [word.replace("{config}", config) for word in self.with_config] if config is not None else []
        words = [one for word in self.command for one in (named if word == "{with_config}" else [word])]
        return tuple(word.replace("{program}", program) for word in words)

    def severity_of(self, result: Result, *, is_test: bool) -> Severity:
        """Return the severity of a result; an unknown level is significant."""
        named = next((value for rule, value in self.rules.items() if fnmatchcase(result.rule, rule)), None)
        found = Severity(named or self.severity.get(result.level, "significant"))
        is_softened = is_test and self.lenient_in_tests and found is not Severity.INFO
        return Severity.MINOR if is_softened else found


@dataclass(frozen=True)
class LinterReport:
    """The findings of a stage's linters. `unproven` lists tools that failed, `missing` tools that can't run."""

    findings: tuple[Finding, ...] = ()
    ran: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unproven: tuple[str, ...] = ()


@cache
def load_tools() -> tuple[LinterTool, ...]:
    """Return the shipped table of linters."""
    table = tomllib.loads(files("decklog.review").joinpath("linters.toml").read_text(encoding="utf-8"))
    return tuple(build_tool(row) for row in table["tool"])


def build_tool(row: Mapping[str, Any]) -> LinterTool:
    """Build a tool from its row."""
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    return LinterTool(**given)


def find_program(name: str) -> str | None:
    """Return the path of an installed program: on PATH, or next to the Python that runs Decklog."""
    found = shutil.which(name) or shutil.which(name, path=os.path.dirname(sys.executable))
    return os.path.abspath(found) if found is not None else None


class _Report:
    """Reads the file that a linter writes, before its folder is removed."""

    readable: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.content: bytes | None = None
        self.root = ""

    def begin(self, folder: Path, tree: Path, env: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002
        self.root = os.path.realpath(tree)
        return {}

    def ended(self, folder: Path) -> None:
        path = folder / "report.xml"
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST_REPORT:
            self.content = path.read_bytes()


class Linters:
    """Runs the linters that apply to one change."""

    def __init__(
        self, runner: Runner, change: Change, settings: ReviewSettings, mark: str, tools: Sequence[LinterTool] | None = None
    ) -> None:
        self._runner = runner
        self._change = change
        self._chosen = settings.rules.tools
        self._tests = IgnoreFile(settings.tests)
        self._mark = mark
        self._tools = load_tools() if tools is None else tools

    def run(self, stage: int) -> LinterReport:
        """Run the linters of a stage and return the new results of the change."""
        findings: list[Finding] = []
        ran, missing, unproven = [], [], []
        chosen = [one for one in self._tools if self._chosen is None or one.name in self._chosen]
        for tool in (one for one in chosen if one.stage == stage):
            paths = self._changed(tool.files)
            config = next((one.partition("#")[0] for one in tool.config if self._has_config(one)), None)
            if not paths or (config is None and self._is_replaced(tool)):
                continue
            program = find_program(tool.program)
            lack = self._lack(tool, program, config)
            if program is None or lack:
                if self._is_required(tool):
                    unproven.append(f"{tool.name} {lack}")
                elif config is not None or self._changed(tool.expected):
                    missing.append(f"{tool.name} {lack}")
                continue
            try:
                findings += self._findings(tool, program, paths, config)
                ran.append(tool.name)
            except UnreadableReport as problem:
                unproven.append(f"{tool.name}: {problem}")
        return LinterReport(tuple(findings), tuple(ran), tuple(missing), tuple(unproven))

    def _is_replaced(self, tool: LinterTool) -> bool:
        """Return whether an installed tool replaces this one."""
        other = next((one for one in self._tools if one.name == tool.unless), None)
        return self._chosen is None and other is not None and find_program(other.program) is not None

    def _is_required(self, tool: LinterTool) -> bool:
        """Return whether the stage is unproven without a tool: the settings name it, or it has no substitute."""
        substitutes = [one for one in self._tools if one.unless == tool.name and find_program(one.program) is not None]
        return self._chosen is not None or (tool.required and not substitutes)

    def _lack(self, tool: LinterTool, program: str | None, config: str | None) -> str:
        """Return why a tool can't run; empty if it can."""
        if program is None:
            return f"is not installed: install {tool.program}, or set tools in [review]"
        return "is not configured in the base" if tool.needs_config and config is None else ""

    def _changed(self, patterns: tuple[str, ...]) -> list[str]:
        """Return the changed files that match, without links and submodules."""
        covered = IgnoreFile(patterns)
        paths = [one.path for one in self._change.paths if one.status != "D" and one.mode not in (LINK, SUBMODULE)]
        return [path for path in paths if covered.covers(path)]

    def _has_config(self, entry: str) -> bool:
        """Return whether the base has a configuration: a file at its root, or a table within one."""
        name, _, table = entry.partition("#")
        repository, base = self._change.repository, self._change.base
        if not table:
            listed = repository.on_objects("ls-tree", "--name-only", "-z", base).out.decode(errors="replace")
            return any(fnmatchcase(one, name) for one in listed.split("\0") if one)
        content = repository.read(base, name)
        return content is not None and _has_table(name, content, table)

    # One tool

    def _findings(self, tool: LinterTool, program: str, paths: Sequence[str], config: str | None) -> list[Finding]:
        commit = self._with_base_config(tool)
        results = self._results(tool, program, commit, paths, config)
        if tool.compare:
            new = self._compare(tool, program, paths, config, results)
        else:
            new = [one for one in results if self._is_on_changed_line(one)]
        found = [self._finding(tool, one) for one in new]
        return sorted(found, key=lambda one: _WORST_FIRST.index(one.severity))[:_MOST_FINDINGS]

    def _compare(
        self, tool: LinterTool, program: str, paths: Sequence[str], config: str | None, results: Sequence[Result]
    ) -> list[Result]:
        """Return the results that a tool does not report on the base; if all files are new, all results."""
        base = self._change.base
        old = [path for path in paths if self._change.repository.read(base, path) is not None]
        if not old:
            return [one for one in results if one.file in paths]
        known = Counter(map(_identity, self._results(tool, program, base, old, config)))
        return [one for one in results if not _take(known, _identity(one))]

    def _finding(self, tool: LinterTool, result: Result) -> Finding:
        is_test = result.file is not None and self._tests.covers(result.file)
        severity, kind = tool.severity_of(result, is_test=is_test), f"{tool.program}:{result.rule}"
        return Finding(severity=severity, kind=kind, text=result.message[:2000], file=result.file, line=result.first)

    def _is_on_changed_line(self, result: Result) -> bool:
        if result.file is None:
            return True
        added = self._change.added_by_file.get(result.file, ())
        if result.first is None:
            return bool(added)
        return any(result.first <= line.number <= (result.last or result.first) for line in added)

    def _results(self, tool: LinterTool, program: str, commit: str, paths: Sequence[str], config: str | None) -> list[Result]:
        """Run a tool on the files of a commit; raise Unreadable unless it ran and its report can be read."""
        command = tool.command_for(program, config)
        check = Check(name=tool.name, command=command, minutes=MINUTES, readable=_needed_folders(program))
        report = _Report()
        said = self._runner.run(check, commit, f"{self._mark}:{tool.name}:{commit[:12]}", paths, companion=report)
        if said.outcome is CheckOutcome.ERROR or said.exit_code not in tool.exit_codes:
            raise UnreadableReport(f"it could not run: {said.described or said.reason}")
        if report.content is None:
            raise UnreadableReport("it wrote no report")
        return read_report(report.content, tool.format, report.root, results=tool.results, fields=tool.fields)

    def _with_base_config(self, tool: LinterTool) -> str:
        """Return a commit of the change in which the configuration of a tool is that of the base."""
        change, repository = self._change, self._change.repository
        changed = [one.path for one in change.paths if tool.config_files.covers(one.path)]
        if not changed:
            return change.head
        gone = "".join(f"0 {'0' * len(change.head)}\t{path}\0" for path in changed).encode(errors="surrogateescape")
        kept = repository.on_objects("ls-tree", "-r", "-z", "--full-tree", change.base, "--", *changed).out
        return repository.commit_with(change.head, gone + kept, "With the configuration of the base\n", self._runner.person)


def _has_table(name: str, content: bytes, table: str) -> bool:
    """Return whether a TOML, JSON or INI file has a table; one that can't be read has none."""
    text = content.decode(errors="replace")
    try:
        if name.endswith((".cfg", ".ini")):
            parser = configparser.RawConfigParser(strict=False)
            parser.read_string(text)
            return parser.has_section(table)
        found: Any = json.loads(text) if name.endswith(".json") else tomllib.loads(text)
        for step in table.split("."):
            found = found[step]
    except (ValueError, LookupError, TypeError, configparser.Error):
        return False
    return True


def _needed_folders(program: str) -> tuple[str, ...]:
    """Return the paths that a program outside of system folders must read: its prefix, and its Python."""
    folder = os.path.dirname(program)
    prefix = os.path.dirname(folder)
    is_prefix = os.path.basename(folder) == "bin" and prefix not in ("/", os.path.expanduser("~"))
    return (prefix if is_prefix else folder, os.path.realpath(program), sys.base_prefix)


def _identity(result: Result) -> tuple[str, str | None, str]:
    """Identify a result without its line number, which changes above it would shift."""
    return result.rule, result.file, _NUMBER.sub("0", result.message)


def _take(known: Counter[tuple[str, str | None, str]], identity: tuple[str, str | None, str]) -> bool:
    """Return whether the base had such a result, and count it as used."""
    if known[identity] <= 0:
        return False
    known[identity] -= 1
    return True
