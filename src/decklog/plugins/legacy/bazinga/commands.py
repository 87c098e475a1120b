"""The commands of bazinga-db: the usage line and the handler of each.

Most commands call one method of the database. `_method` fills the method's parameters from the words and flags with
the same names, converted to the annotated types.
"""

import sys
from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from decklog.plugins.bazinga_project import described
from decklog.plugins.legacy.bazinga.base import MOST_ROWS, CallRefused, from_json_text, given
from decklog.plugins.legacy.bazinga.database import BazingaDB
from decklog.plugins.legacy.bazinga.knowledge import project_of
from decklog.plugins.legacy.bazinga.project import SECTIONS, AutoLogger, Readiness
from decklog.plugins.legacy.bazinga.sessions import groups_of
from decklog.plugins.legacy.bazinga.usage import CommandUsage, Misuse, ProgramReply, UsageValues
from decklog.stores.memory.patterns import PatternOutcome
from decklog.stores.memory.strategies import StrategyTopic
from decklog.stores.workflow.context import ConsumingAgent
from decklog.stores.workflow.router import TestingMode

Bounds = dict[str, tuple[int | None, int | None]]
Answer = Callable[[Any, UsageValues], ProgramReply]
_MODEL_FAMILIES = ("haiku", "sonnet", "opus", "claude", "gpt", "gemini", "o1", "o3", "o4")


@dataclass(frozen=True)
class BazingaCommand:
    """A command: its usage line, its handler, what the handler gets, and whether its errors are JSON."""

    usage: str
    answer: Answer
    opens: Callable[..., Any] | None = BazingaDB
    json_errors: bool = False


def _method(
    name: str,
    message: str = "",
    *,
    shows: bool = True,
    text: bool = False,
    ok: str | None = None,
    bounds: Bounds | None = None,
    **words: tuple[str, ...],
) -> Answer:
    """Build a handler that calls a method. `message` is a format string; a false value under `ok` means exit code 1.

    `words` maps a parameter to the words or flags that can set it; the first given one counts.
    """

    def answer(db: Any, values: UsageValues) -> ProgramReply:
        method = getattr(db, name)
        value = method(**_arguments(method, values, words, bounds or {}))
        facts = value if isinstance(value, dict) else {}
        line = message.format_map(ChainMap(facts, values.named)) or None
        if text and isinstance(value, str):
            return ProgramReply(text=value)
        if not shows:
            return ProgramReply(message=line)
        return ProgramReply(value, message=line, code=0 if ok is None or facts[ok] else 1)

    return answer


def _arguments(method: Any, values: UsageValues, words: dict[str, tuple[str, ...]], bounds: Bounds) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, parameter in signature(method, eval_str=True).parameters.items():
        first, _, last = name.partition("_")[0], "", name.rpartition("_")[2]
        spelled = (name, name.replace("_", "-"), name.removesuffix("_id"), name.removesuffix("_type"), first, last)
        for word in words.get(name, next(((one,) for one in spelled if one in values.known), ())):
            label = words.get(name, (word,))[-1]
            value = values.converted(word, str(parameter.annotation), *bounds.get(name, (None, None)), label=label)
            if value is not None:
                found.setdefault(name, value)
    return found


def _one_of(values: UsageValues, word: str, file_flag: str, problem: str) -> str:
    """Return a text that is given as a word or as a file, but not both."""
    content = values.file(file_flag) if values.get(word) is None else values.get(word)
    if content is None or (values.has(file_flag) and values.get(word) is not None):
        raise Misuse(problem)
    return content


# Sessions and states


def _create_session(db: BazingaDB, values: UsageValues) -> ProgramReply:
    reply = _method("create_session")(db, values)
    is_new = reply.value.get("success")
    reply.message = f"Session created: {values['id']}" if is_new else f"Session already exists: {values['id']}"
    return reply


def _get_session(db: BazingaDB, values: UsageValues) -> ProgramReply:
    row = db.get_session(values["id"])
    if row is None:
        raise CallRefused(f"Session not found: {values['id']}")
    return ProgramReply(row)


def _update_session(db: BazingaDB, values: UsageValues) -> ProgramReply:
    status = values.get("status")
    if status is None or status.startswith("-"):
        raise Misuse("--status STATUS is required")
    return _set_status(db, values["id"], status)


def _set_status(db: BazingaDB, session_id: str, status: str) -> ProgramReply:
    db.update_session_status(session_id, status)
    return ProgramReply(message=f"Session {session_id} status: {status}")


def _save_state(db: BazingaDB, values: UsageValues) -> ProgramReply:
    state = from_json_text("state", _one_of(values, "json", "state-file", "give one state: as JSON, or with --state-file"))
    saved = db.save_state(values["session"], values["type"], state, values.text("group-id", "global"))
    return ProgramReply(saved, message=f"Saved {values['type']} state")


def _save_investigation(db: BazingaDB, values: UsageValues) -> ProgramReply:
    state, event, iteration = values.file("state-file"), values.file("event-file"), values.whole("iteration")
    if state is None or event is None or iteration is None:
        raise Misuse("--state-file and --event-file are required")
    saved = db.save_investigation_iteration(values["session"], values["group"], iteration, values["status"], state, event)
    return ProgramReply(saved, message=f"Saved investigation iteration {iteration}")


# Logs, tokens, outputs


def _save_reasoning(db: BazingaDB, values: UsageValues) -> ProgramReply:
    content = values.file("content-file") if values.get("content") is None else values.get("content")
    arguments = _arguments(db.save_reasoning, values, {}, {"tokens": (0, None)})
    arguments |= {"content": content or "", "confidence": _confidence(values.get("confidence"))}
    return ProgramReply(db.save_reasoning(**arguments), message=f"Saved {values['phase']} reasoning of {values['agent']}")


def _confidence(text: str | None) -> str | None:
    """Parse a confidence: a word, or a percentage."""
    if text is None or not text.isascii() or not text.isdigit():
        return text
    percent = int(text)
    if percent > 100:
        raise CallRefused(f"confidence must be high, medium, low or a percentage, got {text}")
    return "high" if percent >= 80 else "medium" if percent >= 50 else "low"


def _save_event(db: BazingaDB, values: UsageValues) -> ProgramReply:
    payload = _one_of(values, "payload", "payload-file", "give one payload: as an argument, or with --payload-file")
    arguments = _arguments(db.save_event, values, {}, {}) | {"payload": payload}
    return ProgramReply(db.save_event(**arguments), message=f"Saved event {values['subtype']}")


def _log_tokens(db: BazingaDB, values: UsageValues) -> ProgramReply:
    arguments = _arguments(db.log_tokens, values, {"agent_id": ("agent-id", "agent_id")}, {"tokens": (0, None)})
    named = values.get("agent_id")
    if named is not None and "model" not in arguments and named.lower().startswith(_MODEL_FAMILIES):
        arguments |= {"model": named, "agent_id": values.get("agent-id")}
    db.log_tokens(**arguments)
    return ProgramReply(message=f"Logged {arguments['tokens']} tokens of {values['agent']}")


def _save_output(db: BazingaDB, values: UsageValues) -> ProgramReply:
    skill, group, document = values["skill"], values.get("group"), "json"
    if values.get("output") is not None:
        # SESSION GROUP SKILL JSON, as in other commands.
        group, skill, document = values["skill"], values["json"], "output"
    iteration = db.save_skill_output(values["session"], skill, values.json(document), values.get("agent"), group)
    return ProgramReply({"iteration": iteration}, line=True)


def _get_output(db: BazingaDB, values: UsageValues) -> ProgramReply:
    session, skill, agent, group = values["session"], values["skill"], values.get("agent"), values.get("in_group")
    if group is None:
        return ProgramReply(db.get_skill_output(session, skill, agent, values.get("group")))
    found = db.get_skill_output(session, skill, agent, group)
    # As in save-skill-output, the group may come first.
    return ProgramReply(db.get_skill_output(session, group, agent, skill) if found is None else found)


def _check_evidence(db: BazingaDB, values: UsageValues) -> ProgramReply:
    minutes = values.whole("since", low=1) or 30
    return ProgramReply(db.check_skill_evidence(values["session"], values["skills"].split(","), values.get("agent"), minutes))


# Plans


def _save_plan(db: BazingaDB, values: UsageValues) -> ProgramReply:
    if values.get("plan") is None:
        _save_plan_document(db, values["session"], from_json_text("plan", values["prompt"]))
    else:
        total = values.whole("total")
        if total is None:
            raise Misuse("Missing argument: PLAN, PHASES, CURRENT, TOTAL go together")
        phases, metadata = values.json("phases"), values.json("metadata")
        current = values.whole("current")
        db.save_development_plan(values["session"], values["prompt"], values["plan"], phases, current, total, metadata)
    return ProgramReply(message=f"Development plan saved: {values['session']}")


def _save_plan_document(db: BazingaDB, session: str, plan: Any) -> None:
    if not isinstance(plan, dict) or not isinstance(plan.get("phases"), list):
        raise CallRefused("a plan is a JSON object with original_prompt, plan_text and phases")
    text = plan.get("plan_text") or plan.get("plan") or plan.get("description") or ""
    prompt = plan.get("original_prompt") or plan.get("prompt") or text
    total = len(plan["phases"]) if plan.get("total_phases") is None else plan["total_phases"]
    db.save_development_plan(session, prompt, text, plan["phases"], plan.get("current_phase"), total, plan.get("metadata"))


# Context packages, consumption, learning


def _update_references(db: BazingaDB, values: UsageValues) -> ProgramReply:
    group, session = values["group"], values["session"]
    if not db.is_session(session) and db.is_session(group):
        group, session = session, group
    db.update_context_references(group, session, values.json("packages"))
    return ProgramReply(message=f"Context references updated: {group}")


def _save_consumption(db: BazingaDB, values: UsageValues) -> ProgramReply:
    if values["group"] in tuple(ConsumingAgent) and values["agent"] not in tuple(ConsumingAgent):
        # SESSION AGENT RESOURCE_TYPE ID [TOKENS]
        tokens = values.whole("package", low=0)
        used = db.use_resource(values["session"], values["group"], values["agent"], values["iteration"], tokens)
        return ProgramReply(used, message=f"Consumption saved: {values['agent']} {values['iteration']}")
    iteration, package = values.whole("iteration"), values.whole("package")
    if iteration is None or package is None:
        raise Misuse("Missing argument: PACKAGE")
    saved = db.save_consumption(values["session"], values["group"], values["agent"], iteration, package)
    return ProgramReply(saved, message="Consumption saved" if saved["inserted"] else "Consumption already saved")


def _get_consumption(db: BazingaDB, values: UsageValues) -> ProgramReply:
    limit = values.whole("limit")
    most = min(max(50 if limit is None else limit, 1), MOST_ROWS)
    agent = values.get("agent") if values.get("agent") is not None else values.get("agent-type")
    kind = values.get("type")
    found = [] if kind is not None else db.get_consumption(values["session"], values.get("group-id"), agent, most)
    if values.get("agent") is not None:
        found += db.used_resources(values["session"], agent, kind, most)
    return ProgramReply(found[:most])


def _save_pattern(db: BazingaDB, values: UsageValues) -> ProgramReply:
    project, kind, message, solution = values["project"], values["type"], values["message"], values["solution"]
    if values.get("fix") is not None:
        # SESSION GROUP TYPE SIGNATURE FIX
        project, kind, message, solution = project_of(db, project), message, solution, values["fix"]
    hints, stack, confidence = values.texts("context-hints"), values.texts("stack-pattern"), values.number("confidence")
    with db.log.transaction():
        saved = db.save_error_pattern(project, kind, message, solution, values.get("lang"), hints, stack)
        if confidence is not None:
            saved["confidence"] = _move_confidence(db, saved["pattern_hash"], project, confidence)
    return ProgramReply(saved, message=f"Error pattern {saved['operation']}")


def _move_confidence(db: BazingaDB, pattern_hash: str, project: str, wanted: float) -> float:
    """Record outcomes of a pattern until its confidence is near the wanted one: steps are 0.1 up and 0.2 down."""
    if not 0 <= wanted <= 1:
        raise CallRefused(f"confidence must be from 0 to 1, got {wanted}")
    present = db.log.patterns.get(pattern_hash, project).confidence
    while present - wanted >= 0.1 and present > 0.1:
        present = db.log.patterns.judge(pattern_hash, project, PatternOutcome.FAILURE).confidence
    while wanted - present >= 0.05 and present < 1:
        present = db.log.patterns.judge(pattern_hash, project, PatternOutcome.SUCCESS).confidence
    return present


def _judge_pattern(db: BazingaDB, values: UsageValues) -> ProgramReply:
    """Parse an outcome: success or failure, or a number above or below 0."""
    outcome = values["outcome"].strip().lower()
    try:
        change = {"success": 1.0, "failure": -1.0}.get(outcome) or float(outcome)
    except ValueError:
        change = 0.0
    if not change:
        raise CallRefused(f"outcome must be success or failure, got {values['outcome']!r}")
    updated = db.update_error_pattern_confidence(values["hash"], values["project"], change > 0)
    return ProgramReply(updated, message="Confidence updated")


def _clean_patterns(db: BazingaDB, values: UsageValues) -> ProgramReply:
    project, days = values.get("project"), values.whole("max-age-days", low=1)
    count = db.cleanup_expired_patterns(project) if days is None else db.cleanup_older_patterns(days, project)
    return ProgramReply({"success": True, "deleted_count": count, "project_id": project}, message=f"Removed {count} patterns")


def _save_strategy(db: BazingaDB, values: UsageValues) -> ProgramReply:
    project, topic, insight = values["project"], values["topic"], values["insight"]
    if values.get("text") is not None:
        # SESSION GROUP TYPE TEXT [OUTCOME]
        outcome = given(values.get("outcome"))
        project, topic = project_of(db, project), insight
        insight = values["text"] + (f" (outcome: {outcome})" if outcome else "")
    saved = db.save_strategy(project, topic, insight, values.get("lang"), values.get("framework"), values.get("strategy-id"))
    return ProgramReply(saved, message=f"Strategy saved: {saved['strategy_id']}")


def _get_strategies(db: BazingaDB, values: UsageValues) -> ProgramReply:
    topic = values.get("topic")
    if topic is not None and topic not in tuple(StrategyTopic):
        sys.stderr.write(f"Invalid topic: {topic!r}. Must be one of: {', '.join(StrategyTopic)}\n")
    return _method("get_strategies")(db, values)


def _extract_strategies(db: BazingaDB, values: UsageValues) -> ProgramReply:
    group, project, lang, framework = (values.get(name) for name in ("group", "project", "lang", "framework"))
    if group is not None and project is None:
        raise CallRefused("name the group and the project, or neither")
    session = values["session"]
    if group is not None and project is not None:
        found = db.extract_strategies(session, group, project, lang, framework)
        return ProgramReply(found, message=f"Extracted {found['extracted_count']} strategies")
    # Use every group of the session, for the project in its metadata.
    db.expect_session(session)
    project = project_of(db, session)
    each = [db.extract_strategies(session, one.group_id, project, lang, framework) for one in groups_of(db, session)]
    count = sum(one["extracted_count"] for one in each)
    return ProgramReply(
        {"success": True, "extracted_count": count, "session_id": session, "group_id": None, "project_id": project}
    )


# Query and maintenance


def _recover(db: BazingaDB, _: UsageValues) -> ProgramReply:
    found = db.check_integrity()
    if found["ok"]:
        return ProgramReply({"success": True, "message": "The database is whole; there is nothing to recover."})
    advice = f"Nothing was changed. Take what can be read into a new file with: decklog recover {db.db_path}"
    return ProgramReply({"success": False, "error": f"The database is damaged: {found['details']}", "message": advice})


def _diagnose(db: BazingaDB, values: UsageValues) -> ProgramReply:
    found = db.diagnose_group_ids(values.has("fix"))
    return ProgramReply(found, code=1 if found["issues_found"] else 0)


def _route(db: BazingaDB, values: UsageValues) -> ProgramReply:
    missing = [flag for flag in ("current-agent", "status", "session-id") if values.get(flag) is None]
    if missing:
        raise Misuse(f"Missing argument: {', '.join('--' + flag for flag in missing)}")
    mode = values.text("testing-mode", "full")
    if mode not in tuple(TestingMode):
        raise Misuse(f"--testing-mode must be one of {', '.join(TestingMode)}, got {mode!r}")
    return _method("route")(db, values)


# The programs that came with bazinga-db


def _open_logger(path: str, quiet: bool, *, project_root: str | None) -> AutoLogger:
    return AutoLogger(path, quiet=quiet, project_root=project_root)


def _auto_log(logger: AutoLogger, values: UsageValues) -> ProgramReply:
    logger.session_id = values["session"]
    return _method("log_agent_response")(logger, values)


def _init_session(project: Readiness, values: UsageValues) -> ProgramReply:
    if values.has("check-only"):
        found = project.check()
        code = 0 if found["ready"] else 1
        if values.has("json"):
            return ProgramReply(found, code=code)
        project.say("ready" if found["ready"] else f"not ready: {found.get('error', 'the workflow is empty')}")
        return ProgramReply(code=code)
    session_id = project.init_session(values.get("session-id"))
    found = project.check()
    project.say(f"{project.db_path} has {found['transitions_count']} transitions, {found['markers_count']} markers")
    return ProgramReply({"session_id": session_id, **found}) if values.has("json") else ProgramReply(text=session_id)


def _seed(project: Readiness, values: UsageValues) -> ProgramReply:
    sections = tuple(name for name in SECTIONS if values.has(name) and not values.has("all"))
    if not values.has("auto-init-db") and not project.check()["db_exists"]:
        raise CallRefused(f"there is no database at {project.db_path}; make it with init-db, or give --auto-init-db")
    different = project.compare(sections or SECTIONS)
    if different:
        project.say(
            f"bazinga/config differs from the workflow in use in {len(different)} places, such as {different[0]}.\n"
            "Nothing was changed. The owner loads the file with: decklog workflow load bazinga/config/transitions.json"
        )
    return ProgramReply({**project.seed(), "differences": different}, message="Workflow written down")


def _help(_: None, values: UsageValues) -> ProgramReply:
    wanted = values.get("command")
    if wanted is not None and wanted not in COMMANDS:
        raise Misuse(f"Unknown command: {wanted}")
    named = COMMANDS if wanted is None else {wanted: COMMANDS[wanted]}
    lines = [f"  {name} {CommandUsage(command.usage).shown()}".rstrip() for name, command in named.items()]
    head = "usage: bazinga-db [--db PATH] [--project-root DIR] [--quiet] COMMAND [ARGS...]"
    flags = "Flags may be spelled with - or _, and given as --flag VALUE or --flag=VALUE."
    return ProgramReply(text="\n".join([head, "", flags, "", "Commands:", *lines]))


_AT_LEAST_ONE = (1, None)
_COUNTS: Bounds = {
    **dict.fromkeys(("revision_count", "qa_attempts", "tl_review_attempts", "no_progress_count"), (0, None)),
    **dict.fromkeys(("item_count", "complexity", "review_iteration"), _AT_LEAST_ONE),
    "blocking_issues_count": (0, None),
}
_TIERED = "[--item-count N] [--component-path PATH] [--initial-tier TIER] [--complexity N] [--security-sensitive 0|1]"

COMMANDS: dict[str, BazingaCommand] = {
    # Sessions and states
    "create-session": BazingaCommand("ID MODE REQUIREMENTS [--initial-branch BRANCH] [--metadata JSON]", _create_session),
    "get-session": BazingaCommand("ID", _get_session, json_errors=True),
    "list-sessions": BazingaCommand("[LIMIT]", _method("list_sessions")),
    "update-session-status": BazingaCommand(
        "ID STATUS", lambda db, values: _set_status(db, values["id"], values["status"]), json_errors=True
    ),
    "update-session": BazingaCommand("ID [--status|-s STATUS]", _update_session, json_errors=True),
    "complete-session": BazingaCommand("ID", lambda db, values: _set_status(db, values["id"], "completed")),
    "save-state": BazingaCommand("SESSION TYPE [JSON] [--state-file PATH] [--group-id GROUP]", _save_state),
    "get-state": BazingaCommand("SESSION TYPE [--group-id GROUP]", _method("get_latest_state")),
    "dashboard-snapshot": BazingaCommand("SESSION", _method("get_dashboard_snapshot")),
    # Logs, reasoning, events
    "log-interaction": BazingaCommand(
        "SESSION AGENT CONTENT [ITERATION] [AGENT_ID]", _method("log_interaction", "Logged {agent} interaction")
    ),
    "stream-logs": BazingaCommand("SESSION [LIMIT] [OFFSET]", _method("stream_logs", text=True)),
    "get-logs": BazingaCommand("SESSION [--limit N] [--offset N] [--agent-type AGENT] [--since TIME]", _method("get_logs")),
    "save-reasoning": BazingaCommand(
        "SESSION GROUP AGENT PHASE [CONTENT] [--content-file PATH] [--agent-id ID] [--iteration N] "
        "[--confidence high|medium|low] [--references JSON] [--tokens N]",
        _save_reasoning,
    ),
    "get-reasoning": BazingaCommand(
        "SESSION [GROUP] [AGENT] [PHASE] [--group-id GROUP] [--agent-type AGENT] [--phase PHASE] [--limit N] "
        "[--format json|prompt-summary]",
        _method(
            "get_reasoning",
            text=True,
            bounds={"limit": _AT_LEAST_ONE},
            group_id=("group", "group-id"),
            agent_type=("agent", "agent-type"),
        ),
    ),
    "reasoning-timeline": BazingaCommand(
        "SESSION [--group-id GROUP] [--format json|markdown]", _method("reasoning_timeline", text=True)
    ),
    "check-mandatory-phases": BazingaCommand("SESSION GROUP AGENT", _method("check_mandatory_phases", ok="complete")),
    "save-event": BazingaCommand(
        "SESSION SUBTYPE [PAYLOAD] [--payload-file PATH] [--idempotency-key KEY] [--group-id GROUP]", _save_event
    ),
    "get-events": BazingaCommand(
        "SESSION [SUBTYPE] [MOST] [--limit N] [--group-id GROUP]",
        _method("get_events", bounds={"limit": _AT_LEAST_ONE}, limit=("most", "limit")),
    ),
    "save-investigation-iteration": BazingaCommand(
        "SESSION GROUP ITERATION STATUS [--state-file PATH] [--event-file PATH]", _save_investigation
    ),
    # Task groups, plans, criteria
    "create-task-group": BazingaCommand(
        f"GROUP SESSION NAME [STATUS] [ASSIGNED_TO] [--specializations JSON] {_TIERED}",
        _method("create_task_group", "Task group created: {group}", bounds={**_COUNTS, "complexity": (1, 10)}),
        json_errors=True,
    ),
    "update-task-group": BazingaCommand(
        "GROUP SESSION [--status* STATUS] [--assigned-to* AGENT] [--revision-count* N] [--last-review-status* STATUS] "
        "[--name* NAME] [--specializations* JSON] [--item-count* N] [--security-sensitive* BOOL] [--qa-attempts* N] "
        "[--tl-review-attempts* N] [--component-path* PATH] [--initial-tier* TIER] [--complexity* N] "
        "[--review-iteration* N] [--no-progress-count* N] [--blocking-issues-count* N] [--speckit-task-ids* JSON] "
        "[--auto-create* BOOL]",
        _method("update_task_group", "Task group updated: {group}", bounds=_COUNTS),
        json_errors=True,
    ),
    "get-task-groups": BazingaCommand("SESSION [STATUS]", _method("get_task_groups")),
    "save-development-plan": BazingaCommand("SESSION PROMPT [PLAN] [PHASES] [CURRENT] [TOTAL] [METADATA]", _save_plan),
    "get-development-plan": BazingaCommand("SESSION", _method("get_development_plan")),
    "update-plan-progress": BazingaCommand(
        "SESSION PHASE STATUS [PERCENT]",
        _method("update_plan_progress", "Phase {phase}: {status}", shows=False, bounds={"progress_percent": (0, 100)}),
    ),
    "save-success-criteria": BazingaCommand(
        "SESSION CRITERIA", _method("save_success_criteria", "Success criteria saved: {session}", shows=False)
    ),
    "get-success-criteria": BazingaCommand("SESSION", _method("get_success_criteria")),
    "update-success-criterion": BazingaCommand(
        "SESSION CRITERION [STATUS] [NOTES] [--status STATUS] [--actual TEXT] [--evidence TEXT]",
        _method("update_success_criterion", "Criterion updated: {criterion}", shows=False, evidence=("evidence", "notes")),
    ),
    # Tokens and skill outputs
    "log-tokens": BazingaCommand("SESSION AGENT TOKENS [AGENT_ID] [--agent-id ID] [--model MODEL]", _log_tokens),
    "token-summary": BazingaCommand("SESSION [BY]", _method("get_token_summary")),
    "save-skill-output": BazingaCommand("SESSION SKILL JSON [OUTPUT] [--agent AGENT] [--group GROUP]", _save_output),
    "get-skill-output": BazingaCommand("SESSION SKILL [IN_GROUP] [--agent AGENT] [--group GROUP]", _get_output),
    "get-skill-output-all": BazingaCommand(
        "SESSION [SKILL] [--agent AGENT] [--group GROUP]", _method("get_skill_output_all", skill_name=("skill",))
    ),
    "check-skill-evidence": BazingaCommand("SESSION SKILLS [--agent AGENT] [--since|--within-minutes MINUTES]", _check_evidence),
    # Context packages, consumption, learning
    "save-context-package": BazingaCommand(
        "SESSION GROUP TYPE FILE PRODUCER CONSUMERS PRIORITY SUMMARY [--supersedes ID]",
        _method("save_context_package", "Context package saved: {package_id}", bounds={"supersedes_id": _AT_LEAST_ONE}),
    ),
    "get-context-packages": BazingaCommand(
        "SESSION GROUP AGENT [LIMIT] [--include-consumed]", _method("get_context_packages", bounds={"limit": (1, 50)})
    ),
    "mark-context-consumed": BazingaCommand(
        "PACKAGE AGENT [ITERATION]",
        _method("mark_context_consumed", "Package {package} consumed by {agent}", shows=False, bounds={"iteration": (0, None)}),
    ),
    "update-context-references": BazingaCommand("GROUP SESSION PACKAGES", _update_references),
    "save-consumption": BazingaCommand("SESSION GROUP AGENT ITERATION [PACKAGE]", _save_consumption),
    "get-consumption": BazingaCommand(
        "SESSION [AGENT] [TYPE] [--group-id GROUP] [--agent-type AGENT] [--limit N]", _get_consumption
    ),
    "save-error-pattern": BazingaCommand(
        "PROJECT TYPE MESSAGE SOLUTION [FIX] [--lang LANG] [--context-hints JSON] [--stack-pattern JSON] [--confidence N]",
        _save_pattern,
    ),
    "get-error-patterns": BazingaCommand(
        "PROJECT [--lang LANG] [--min-confidence N] [--limit N] [--error-type TYPE]",
        _method("get_error_patterns", bounds={"limit": _AT_LEAST_ONE}),
    ),
    "update-error-confidence": BazingaCommand("HASH PROJECT OUTCOME", _judge_pattern),
    "cleanup-error-patterns": BazingaCommand("[PROJECT] [--max-age-days N]", _clean_patterns),
    "save-strategy": BazingaCommand(
        "PROJECT TOPIC INSIGHT [TEXT] [OUTCOME] [--lang LANG] [--framework NAME] [--strategy-id ID]", _save_strategy
    ),
    "get-strategies": BazingaCommand(
        "PROJECT [--lang LANG] [--framework NAME] [--topic|--strategy-type TOPIC] [--limit N]", _get_strategies
    ),
    "update-strategy-helpfulness": BazingaCommand(
        "ID [INCREMENT]", _method("update_strategy_helpfulness", "Helpfulness updated")
    ),
    "extract-strategies": BazingaCommand("SESSION [GROUP] [PROJECT] [--lang LANG] [--framework NAME]", _extract_strategies),
    # Query and maintenance
    "query": BazingaCommand("SQL...", lambda db, values: ProgramReply(db.query(" ".join(values.words)))),
    "integrity-check": BazingaCommand("", _method("check_integrity", ok="ok")),
    "recover-db": BazingaCommand("", _recover),
    "diagnose-group-ids": BazingaCommand("[--fix]", _diagnose),
    "route": BazingaCommand(
        "[--current-agent AGENT] [--status STATUS] [--session-id ID] [--group-id GROUP] "
        "[--testing-mode full|minimal|disabled] [--db PATH]",
        _route,
    ),
    # The programs that came with bazinga-db
    "auto-logger": BazingaCommand("DB SESSION AGENT CONTENT [ITERATION] [AGENT_ID]", _auto_log, _open_logger),
    "init-db": BazingaCommand(
        "[DB]", lambda project, _: ProgramReply(project.seed(), message=f"{project.db_path} is ready"), Readiness
    ),
    "init-session": BazingaCommand(
        "[--session-id ID] [--db PATH] [--project-root DIR] [--check-only] [--json]", _init_session, Readiness
    ),
    "seed-configs": BazingaCommand(
        "[--transitions] [--markers] [--rules] [--all] [--db PATH] [--project-root DIR] [--auto-init-db]", _seed, Readiness
    ),
    "detect-paths": BazingaCommand("", lambda _, __: ProgramReply(described()), None),
    "help": BazingaCommand("[COMMAND]", _help, None),
}
