"""Setting agents' programs up, and saying what was done."""

import os
import subprocess
import sys
from dataclasses import replace
from difflib import unified_diff
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from decklog import __version__
from decklog.agents.setup import files
from decklog.agents.setup.examining import (
    SetupFindings,
    codex_trust,
    found_program,
    probe,
    registered,
    server_answers,
    version_of,
    waiting_in,
)
from decklog.agents.setup.guard_trial import BY_HAND, COMMAND, CodexTrust, ListedHook, listed, tried, trust_of
from decklog.agents.setup.installing import Installer, SavedChanges, SetupState, SetupStep, state_of
from decklog.agents.setup.parts import FilePart, JsonServer, TomlServer
from decklog.agents.setup.supported import PROGRAMS, Setting, SetupScope, SupportedProgram, codex_folder, has_plugin
from decklog.agents.spool import Spool
from decklog.cli import terminal
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.exits import Trouble, print_findings
from decklog.cli.show import show
from decklog.cli.terminal import say
from decklog.core.errors import DecklogError, Unavailable
from decklog.core.extras import install_hint
from decklog.location.locate import LogLocation, locate, repository, spool_folder, users_own

if TYPE_CHECKING:
    from decklog.mcp.token import Token

_EXITS = {SetupState.INSTALLED: 0, SetupState.MISSING: 3, SetupState.DIFFERS: 5}


def setting_of(scope: SetupScope, *, project: str, **more: Any) -> Setting:
    """Return where and how a program is set up from here."""
    home = os.path.expanduser("~")
    return Setting(call=own_call(), scope=scope, home=home, project=project, version=__version__, environment=os.environ, **more)


def project() -> str | None:
    """Return the repository that this folder is in, or the folder above that has a log."""
    return repository(os.getcwd()) or locate(None, environment={}).folder


def _project_of(scope: SetupScope, plugin_folder: str | None) -> str:
    found = project()
    if found is None and scope is SetupScope.PROJECT and plugin_folder is None:
        raise WrongUsage(
            f"{os.getcwd()} is in no repository and has no log, so which project is meant is not clear",
            hint="Run `decklog init` here first, or say --user where the program has settings of the user's.",
        )
    return found or os.getcwd()


def own_call() -> tuple[str, ...]:
    """Return the words that call this very Decklog from anywhere: editors and programs begin with a path of their own."""
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "decklog")
    return (beside,) if os.access(beside, os.X_OK) else (os.path.abspath(sys.executable), "-P", "-m", "decklog")


def installer() -> Installer:
    return Installer(SavedChanges(os.path.join(os.path.dirname(users_own().target), "setup")))


def set_up(call: Invocation, program: SupportedProgram, asked: dict[str, bool], *, is_trusted: bool = False, **more: Any) -> int:
    if sum(asked[name] for name in ("check", "remove", "printing")) > 1 or (asked["user"] and asked["project"]):
        raise WrongUsage("--check, --remove and --print exclude each other, and so do --user and --project")
    scope = program.scope(user=asked["user"], project=asked["project"])
    has_server = _has_server(asked, is_plugin=bool(more.get("plugin_folder")))
    setting = setting_of(scope, project=_project_of(scope, more.get("plugin_folder")), has_server=has_server, **more)
    parts = program.parts(setting)
    if asked["remove"]:
        return _remove(call, program, setting, parts)
    if asked["check"]:
        return _check(call, parts, _trust_state(setting, parts[0].path) if is_trusted else {})
    steps = installer().putting_in(parts)
    if asked["printing"]:
        return _print(call, steps)
    installer().carry_out(steps)
    warnings = _warnings(program, setting, steps)
    if program.name == "codex":
        more_steps, said = (
            _trusted(setting, parts[0].path) if is_trusted else ([], f"Codex runs no hook before its user trusts it. {BY_HAND}")
        )
        steps += more_steps
        warnings += [said] if said else []
    problems = tried(program, setting)
    warnings += [_not_blocked(path, problem) for path, problem in problems.items() if problem is not None]
    if problems:
        warnings += [] if any(problems.values()) else [f"the guard was tried: `{COMMAND}` was blocked"]
    return _report(call, program, setting, steps, warnings) or int(any(problems.values()))


def _not_blocked(path: str, problem: str) -> str:
    return f"THE GUARD DOES NOT WORK: `{COMMAND}` through {path} ended with {problem}. See: decklog doctor agents"


def _has_server(asked: dict[str, bool], *, is_plugin: bool) -> bool | None:
    """Return whether the MCP server belongs to what is set up: a plugin has it, settings where it was asked for."""
    if asked["remove"]:
        return is_plugin or None
    is_here = find_spec("mcp") is not None
    if asked.get("mcp") and not is_here:
        raise Unavailable("the MCP server needs the package mcp, which is not installed", hint=install_hint("mcp"))
    return is_here if is_plugin else asked.get("mcp") or None


def _check(call: Invocation, parts: list[FilePart], trust: dict[str, SetupState]) -> int:
    states = {part.path: state_of(part) for part in parts} | trust
    show([{"path": path, "state": state.value} for path, state in states.items()], as_json=call.json)
    return max(_EXITS[state] for state in states.values())


def _remove(call: Invocation, program: SupportedProgram, setting: Setting, parts: list[FilePart]) -> int:
    if program.name == "codex":
        parts = [*parts, CodexTrust(_config(setting), files.real(parts[0].path), {})]
    steps = installer().taking_out(parts)
    installer().carry_out(steps)
    return _report(call, program, setting, steps, [])


def _print(call: Invocation, steps: list[SetupStep]) -> int:
    """Show the lines that would be added, with those around them."""
    shown = [{"path": step.path, "change": _difference(step)} for step in steps]
    if call.json:
        return show(shown, as_json=True)
    for one in shown:
        terminal.say(one["change"] or f"{one['path']} has it already.")
    return 0


def _difference(step: SetupStep) -> str:
    before = (step.before or "").splitlines()
    after = (step.after or "").splitlines()
    name = step.path if step.before is not None else os.devnull
    return "\n".join(unified_diff(before, after, name, step.path, n=1, lineterm=""))


def _report(call: Invocation, program: SupportedProgram, setting: Setting, steps: list[SetupStep], warnings: list[str]) -> int:
    rows = [{"path": step.path, "state": _done(step)} for step in steps]
    facts = {"program": program.name, "scope": setting.scope.value, "files": rows}
    is_out = all(step.after is None or not step.part.present(step.after) for step in steps)
    if call.json:
        return show({**facts, "guard": None if is_out else program.guard}, as_json=True, warnings=warnings)
    for row in rows:
        terminal.say(f"{row['path']}: {row['state']}")
    for warning in warnings:
        terminal.say(f"Note: {warning}")
    if not is_out:
        terminal.say(f"Guard: {program.guard}")
        for step in program.next:
            terminal.say(f"Next: {step}")
    return 0


def _done(step: SetupStep) -> str:
    if not step.is_change:
        return "already" if step.after and step.part.present(step.after) else "nothing of ours there"
    if step.change is not None:
        return "written"
    return "removed" if step.after is None else "taken out"


def _warnings(program: SupportedProgram, setting: Setting, steps: list[SetupStep]) -> list[str]:
    warnings = [warning for step in steps for warning in step.part.warnings(step.after or "")]
    place = locate(None, setting.project)
    if not place.exists:
        warnings.append(f"nothing is recorded yet: {place.reason}. Run `decklog init`.")
    for step in steps:
        is_local = step.path.endswith(("settings.local.json", "mcp.json")) and setting.plugin_folder is None
        if is_local and not _is_ignored(step.path):
            warnings.append(f"git does not ignore {step.path}; its paths are this machine's, so keep it out of commits")
    if setting.is_enforced and program.name == "claude":
        warnings.append(
            "a version of Claude Code that does not know onFailure ignores it, and lets a call through when the hook fails"
        )
    return warnings if setting.plugin_folder else warnings + _double_setup_warnings(program, setting)


def _double_setup_warnings(program: SupportedProgram, setting: Setting) -> list[str]:
    """Return when the program is set up in another way as well."""
    others = [replace(setting, scope=scope) for scope in program.scopes]
    try:
        twice = [
            f"for the {other.scope.value}"
            for other in others
            if other != setting and any(state_of(part) is not SetupState.MISSING for part in program.parts(other))
        ]
        if program.name == "claude" and any(has_plugin(other) for other in others):
            twice.append("as a plugin")
    except DecklogError:
        return []
    return (
        [] if setting.plugin_folder else [f"it is set up {way} too, so each event is told twice; one is enough" for way in twice]
    )


def _is_ignored(path: str) -> bool:
    folder = os.path.dirname(path)
    if repository(folder) is None:
        return True
    try:
        done = subprocess.run(["git", "-C", folder, "check-ignore", "-q", path], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode != 1


def _config(setting: Setting) -> str:
    """Name the settings that hold Codex's trust, which are the user's for a project's hooks too."""
    return os.path.join(codex_folder(replace(setting, scope=SetupScope.USER)), "config.toml")


def _listed(setting: Setting) -> list[ListedHook]:
    executable = found_program(PROGRAMS["codex"], setting.environment)
    if executable is None:
        raise Unavailable("codex is not on the path, so it can't be asked about its hooks", hint=BY_HAND)
    return listed(executable, setting.project, setting.environment)


def _trust_state(setting: Setting, hooks_file: str) -> dict[str, SetupState]:
    """Return whether Codex trusts every hook of ours in a file."""
    ours = [hook for hook in _listed(setting) if files.real(hook.path) == files.real(hooks_file)]
    is_trusted = bool(ours) and all(hook.is_trusted for hook in ours)
    return {_config(setting): SetupState.INSTALLED if is_trusted else SetupState.MISSING}


def _trusted(setting: Setting, hooks_file: str) -> tuple[list[SetupStep], str | None]:
    """Record the user's trust of our hooks in Codex's settings; return what to do by hand if that fails."""
    try:
        hooks = _listed(setting)
        part = trust_of(_config(setting), hooks, hooks_file)
        steps = installer().putting_in([] if part is None else [part])
        installer().carry_out(steps)
    except DecklogError as problem:
        return [], f"{problem.message}. {problem.hint or BY_HAND}"
    if part is None:
        return [], f"Codex lists none of these hooks: it reads a repository's only where it trusts the folder. {BY_HAND}"
    return steps, None


def examine(call: Invocation) -> int:
    """Show the set-up of each coding agent, and its problems."""
    findings = SetupFindings()
    facts = _programs(locate(call.db), findings)
    if call.json:
        first = findings.all[0] if findings.all else None
        problem = Trouble(first["what"], hint=first["mend"]) if first else None
        return print_findings({**facts, "findings": findings.all}, problem)
    _show(facts)
    for finding in findings.all:
        say(f"TROUBLE  {finding['what']}\n         {finding['mend']}")
    click.echo("No trouble found." if not findings.all else f"{len(findings.all)} found.")
    return 1 if findings.all else 0


def _show(facts: dict[str, Any]) -> None:
    programs = facts["programs"]
    show({name: value for name, value in facts.items() if name != "programs"}, as_json=False)
    for program in programs:
        say("")
        show(program, as_json=False)
    if not programs:
        say("No program of an agent is on the path.")


def _programs(place: LogLocation, findings: SetupFindings) -> dict[str, Any]:
    settings = {scope: setting_of(scope, project=project() or os.getcwd()) for scope in SetupScope}
    here = [
        (program, path)
        for program in PROGRAMS.values()
        if (path := found_program(program, settings[SetupScope.USER].environment))
    ]
    facts = [_program(program, path, settings, findings) for program, path in here]
    if started := [row for row in facts if row.get("mcp")]:
        # All of them start the same server, so it is tried once.
        answered = server_answers(settings[SetupScope.PROJECT], findings)
        for row in started:
            row["mcp"] = answered
    try:
        place.must_exist()
        with place.open() as log:
            spool = Spool(spool_folder(place))
            waiting = waiting_in(spool, findings)
            for (program, _), row in zip(here, facts, strict=True):
                row["events_arrive"] = probe(program.name, settings[SetupScope.PROJECT], log, spool, findings)
    except DecklogError as problem:
        findings.add("log", problem.message, problem.hint or "Run `decklog doctor`.")
        waiting = {}
    return {"log": place.shown, **waiting, "programs": facts}


def _program(
    program: SupportedProgram, path: str, settings: dict[SetupScope, Setting], findings: SetupFindings
) -> dict[str, Any]:
    row: dict[str, Any] = {"program": program.name, "path": path, "version": version_of(path)}
    if row["version"] is None:
        findings.add(program.name, f"{path} --version does not answer", "Install it anew.")
    states = registered(program, settings, findings)
    row["set_up"] = ", ".join(f"{scope} {state}" for scope, state in states.items())
    if program.name == "codex":
        row["trusted"] = codex_trust(path, settings[SetupScope.PROJECT].project, settings[SetupScope.USER].environment, findings)
    if _has_server_doctor(program, settings, states):
        row["mcp"] = True
    if set(states.values()) == {"missing"}:
        row["next"] = f"decklog setup {program.name}"
    row["guard"] = program.guard
    if results := _tried(program, settings, findings):
        row["guard_tried"] = "; ".join(results)
    return row


def guard_findings() -> tuple[dict[str, str], list[dict[str, str]]]:
    """Try the guard of every program that is set up here; return what happened by program, and what is wrong."""
    findings = SetupFindings()
    settings = {scope: setting_of(scope, project=project() or os.getcwd()) for scope in SetupScope}
    found = {program.name: _tried(program, settings, findings) for program in PROGRAMS.values()}
    return {name: "; ".join(results) for name, results in found.items() if results}, findings.all


def _tried(program: SupportedProgram, settings: dict[SetupScope, Setting], findings: SetupFindings) -> list[str]:
    """Send a dangerous command through each installed hook of a program; return what happened, each as a line."""
    found = {(scope, path): problem for scope in program.scopes for path, problem in tried(program, settings[scope]).items()}
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
    return any(isinstance(part, (JsonServer, TomlServer)) for part in parts)


def serve_mcp(call: Invocation, port: int | None, token_file: str | None) -> int:
    """Answer on standard input and output, or on HTTP."""
    if token_file is not None and port is None:
        raise WrongUsage("--token-file is for HTTP", hint="Add --http PORT, or leave it out.")
    _prepare()
    try:
        from decklog.mcp.server import build
        from decklog.mcp.source import LogSource
    except ModuleNotFoundError as missing:
        what = f"the MCP server needs the package mcp, and {missing.name} is not installed"
        raise Unavailable(what, hint=install_hint("mcp")) from None
    source = LogSource(call.db)
    if port is not None:
        return _over_http(build(source), port, token_file)
    from decklog.mcp.stdio import serve

    if sys.stdin.isatty():
        # A person at a terminal does not type JSON-RPC.
        sys.stderr.write(
            "Waiting for a program that calls tools; `decklog setup claude --mcp` has one start this. Ctrl-C ends.\n"
        )
    serve(build(source))
    return 0


def _prepare() -> None:
    """Make a program that lives on of one that was meant to live for a moment."""
    import gc
    import logging
    import signal

    gc.enable()
    # A thread that waits for input can't be stopped, so end at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # What clients send is no business of a log on standard error, and neither is what they show.
    logging.getLogger().addHandler(logging.NullHandler())


def _over_http(server: object, port: int, token_file: str | None) -> int:
    from decklog.mcp.http import listen, serve
    from decklog.mcp.token import VARIABLE, find_token

    token = find_token(token_file, os.environ)
    if token.is_new and not sys.stderr.isatty():
        raise WrongUsage(
            "a new token would be shown to nobody, since this is no terminal",
            hint=f"Name a file for it: --token-file FILE, or set {VARIABLE}.",
        )
    serve(server, listen(port), token, lambda address: _announce(address, token))  # type: ignore[arg-type]
    return 0


def _announce(address: str, token: "Token") -> None:
    terminal.say(address)
    sys.stdout.flush()
    if token.is_new:
        sys.stderr.write(f"Token, shown only now: {token.text}\n")
