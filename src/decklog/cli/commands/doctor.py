"""Check a log and the coding agents that are set up here."""

import os
from typing import Any

import click

from decklog.agents.setup.examining import (
    SetupFindings,
    codex_trust,
    count_waiting,
    find_program,
    find_setup_states,
    probe,
    probe_server,
    version_of,
)
from decklog.agents.setup.guard_trial import COMMAND, try_hooks
from decklog.agents.setup.supported import PROGRAMS, Setting, SetupScope, SupportedProgram
from decklog.agents.spool import Spool
from decklog.cli.agent_settings import build_setting, find_project
from decklog.cli.call import Invocation
from decklog.cli.exits import ProblemFound
from decklog.cli.show import show
from decklog.cli.terminal import ProgressMeter, print_text
from decklog.core.display import counted
from decklog.core.errors import Damaged, DecklogError
from decklog.core.plugins import find_ignored_entries
from decklog.location.locate import LogLocation, locate, spool_folder


@click.command()
@click.argument("part", required=False, type=click.Choice(["agents"]))
@click.option("--deep", is_flag=True, help="also check every page of a large file, and walk every hash chain as verify does")
@click.pass_obj
def doctor(call: Invocation, part: str | None, deep: bool) -> int:
    """Check engine, file, pages, leases, budgets and locks; name problems and how to fix them.

    `decklog doctor agents` looks at the programs of agents instead: which are installed and set up, whether an event of theirs
    arrives in the log, and what their guard is worth.
    """
    if part == "agents":
        return examine_agents(call)
    facts, findings = _examine_log(call, deep)
    guards, unguarded = examine_guards()
    facts |= {"guard": ", ".join(f"{name} {result}" for name, result in guards.items())} if guards else {}
    findings += unguarded
    if ignored := find_ignored_entries():
        facts["ignored_plugins"] = "; ".join(f"{one.entry.name} of {one.package}: {one.why_ignored}" for one in ignored)
    if not call.json:
        show({name: value for name, value in facts.items() if name != "steps"}, as_json=False)
    return _conclude(call, facts, findings)


def _conclude(call: Invocation, facts: dict[str, Any], findings: list[dict[str, str]]) -> int:
    """Print the problems, with --json together with the facts; return the exit code."""
    lines = [f"PROBLEM  {finding['what']}\n         {finding['mend']}" for finding in findings]
    lines.append("No problems found." if not findings else f"{counted(len(findings), 'problem')} found.")
    problem = ProblemFound(findings[0]["what"], hint=findings[0]["mend"]) if findings else None
    return show({**facts, "findings": findings}, as_json=call.json, text="\n".join(lines), problem=problem)


def _examine_log(call: Invocation, deep: bool) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Return the facts and findings of a log; a file too damaged to open is a finding."""
    from decklog.transfer.doctor import find_problems, find_writers

    place = locate(call.db)
    try:
        with call.open(writing=False) as log:
            facts = {**log.db.facts(), "written_by": find_writers(log)}
            with ProgressMeter() as meter:
                return facts, [*_file_findings(facts), *find_problems(log, facts, deep=deep, progress=meter)]
    except Damaged as problem:
        mend = f"decklog recover {place.path}, or decklog restore BACKUP"
        finding = {
            "about": "page",
            "what": problem.message,
            "mend": "Restore the server's own backup." if place.is_server else mend,
        }
        return {"path": place.shown if place.is_server else place.path}, [finding]


def _file_findings(facts: dict[str, Any]) -> list[dict[str, str]]:
    if facts["engine"] != "sqlite" or facts["journal_mode"] == "wal" or facts["read_only"]:
        return []
    return [{"about": "mode", "what": f"the journal mode is {facts['journal_mode']}", "mend": "decklog migrate"}]


def examine_agents(call: Invocation) -> int:
    """Show the setup of each coding agent, and its problems."""
    findings = SetupFindings()
    facts = _examine_programs(locate(call.db), findings)
    if not call.json:
        _show_agents(facts)
    return _conclude(call, facts, findings.all)


def _show_agents(facts: dict[str, Any]) -> None:
    programs = facts["programs"]
    show({name: value for name, value in facts.items() if name != "programs"}, as_json=False)
    for program in programs:
        print_text("")
        show(program, as_json=False)
    if not programs:
        print_text("No program of an agent is on the path.")


def _examine_programs(place: LogLocation, findings: SetupFindings) -> dict[str, Any]:
    settings = {scope: build_setting(scope, project=find_project() or os.getcwd()) for scope in SetupScope}
    here = [
        (program, path) for program in PROGRAMS.values() if (path := find_program(program, settings[SetupScope.USER].environment))
    ]
    facts = [_examine_program(program, path, settings, findings) for program, path in here]
    if started := [row for row in facts if row.get("mcp")]:
        # All programs start the same server, so try it once.
        answered = probe_server(settings[SetupScope.PROJECT], findings)
        for row in started:
            row["mcp"] = answered
    try:
        place.must_exist()
        with place.open() as log:
            spool = Spool(spool_folder(place))
            waiting = count_waiting(spool, findings)
            for (program, _), row in zip(here, facts, strict=True):
                row["events_arrive"] = probe(program.name, settings[SetupScope.PROJECT], log, spool, findings)
    except DecklogError as problem:
        findings.add("log", problem.message, problem.hint or "Run `decklog doctor`.")
        waiting = {}
    return {"log": place.shown, **waiting, "programs": facts}


def _examine_program(
    program: SupportedProgram, path: str, settings: dict[SetupScope, Setting], findings: SetupFindings
) -> dict[str, Any]:
    row: dict[str, Any] = {"program": program.name, "path": path, "version": version_of(path)}
    if row["version"] is None:
        findings.add(program.name, f"{path} --version does not answer", "Install it anew.")
    states = find_setup_states(program, settings, findings)
    row["set_up"] = ", ".join(f"{scope} {state}" for scope, state in states.items())
    if program.name == "codex":
        row["trusted"] = codex_trust(path, settings[SetupScope.PROJECT].project, settings[SetupScope.USER].environment, findings)
    if _has_server_doctor(program, settings, states):
        row["mcp"] = True
    if set(states.values()) == {"missing"}:
        row["next"] = f"decklog setup {program.name}"
    row["guard"] = program.guard
    if results := _try_guard(program, settings, findings):
        row["guard_tried"] = "; ".join(results)
    return row


def examine_guards() -> tuple[dict[str, str], list[dict[str, str]]]:
    """Try the guard of every program that is set up here; return the results by program, and the problems."""
    findings = SetupFindings()
    settings = {scope: build_setting(scope, project=find_project() or os.getcwd()) for scope in SetupScope}
    found = {program.name: _try_guard(program, settings, findings) for program in PROGRAMS.values()}
    return {name: "; ".join(results) for name, results in found.items() if results}, findings.all


def _try_guard(program: SupportedProgram, settings: dict[SetupScope, Setting], findings: SetupFindings) -> list[str]:
    """Send a dangerous command through each installed hook of a program; return the results as lines."""
    found = {(scope, path): problem for scope in program.scopes for path, problem in try_hooks(program, settings[scope]).items()}
    for (scope, path), problem in found.items():
        if problem is not None:
            what = f"the guard of {program.title} does not work: `{COMMAND}` through {path} ended with {problem}"
            findings.add(program.name, what, f"decklog setup {program.name} --{scope.value}, then decklog doctor agents")
    return [f"{scope.value}: `{COMMAND}` was {'NOT judged' if problem else 'blocked'}" for (scope, _), problem in found.items()]


def _has_server_doctor(program: SupportedProgram, settings: dict[SetupScope, Setting], states: dict[str, str]) -> bool:
    """Return whether a program is set up to start the MCP server, by its settings or by the plugin."""
    if "plugin" in states.values():
        return True
    try:
        parts = [part for scope in program.scopes for part in program.parts(settings[scope])]
    except DecklogError:
        return False
    return any(part.owner == "mcp" for part in parts)
