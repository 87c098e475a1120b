"""Every command: the module that answers it, and its usage line."""

# Functions of these names, with underscores, answer the commands; their modules are imported when they are called.
COMMANDS: dict[str, tuple[str, str]] = {
    # Sessions and state
    "create-session": ("sessions", "ID MODE REQUIREMENTS [--initial-branch BRANCH] [--metadata JSON]"),
    "get-session": ("sessions", "ID"),
    "list-sessions": ("sessions", "[LIMIT]"),
    "update-session-status": ("sessions", "ID STATUS"),
    "update-session": ("sessions", "ID [--status|-s STATUS]"),
    "complete-session": ("sessions", "ID"),
    "save-state": ("states", "SESSION TYPE [JSON] [--state-file PATH] [--group-id GROUP]"),
    "get-state": ("states", "SESSION TYPE [--group-id GROUP]"),
    "dashboard-snapshot": ("dashboard", "SESSION"),
    # Logs, reasoning, events
    "log-interaction": ("logs", "SESSION AGENT CONTENT [ITERATION] [AGENT_ID]"),
    "stream-logs": ("logs", "SESSION [LIMIT] [OFFSET]"),
    "get-logs": ("logs", "SESSION [--limit N] [--offset N] [--agent-type AGENT] [--since TIME]"),
    "save-reasoning": (
        "reasoning",
        "SESSION GROUP AGENT PHASE [CONTENT] [--content-file PATH] [--agent-id ID] [--iteration N] "
        "[--confidence high|medium|low] [--references JSON] [--tokens N]",
    ),
    "get-reasoning": (
        "reasoning",
        "SESSION [GROUP] [AGENT] [PHASE] [--group-id GROUP] [--agent-type AGENT] [--phase PHASE] [--limit N] "
        "[--format json|prompt-summary]",
    ),
    "reasoning-timeline": ("reasoning", "SESSION [--group-id GROUP] [--format json|markdown]"),
    "check-mandatory-phases": ("reasoning", "SESSION GROUP AGENT"),
    "save-event": (
        "events",
        "SESSION SUBTYPE [PAYLOAD] [--payload-file PATH] [--idempotency-key KEY] [--group-id GROUP]",
    ),
    "get-events": ("events", "SESSION [SUBTYPE] [MOST] [--limit N] [--group-id GROUP]"),
    "save-investigation-iteration": ("states", "SESSION GROUP ITERATION STATUS [--state-file PATH] [--event-file PATH]"),
    # Task groups, plans, criteria
    "create-task-group": (
        "groups",
        "GROUP SESSION NAME [STATUS] [ASSIGNED_TO] [--specializations JSON] [--item-count N] [--component-path PATH] "
        "[--initial-tier TIER] [--complexity N] [--security-sensitive 0|1]",
    ),
    "update-task-group": (
        "groups",
        "GROUP SESSION [--status* STATUS] [--assigned-to* AGENT] [--revision-count* N] [--last-review-status* STATUS] "
        "[--name* NAME] [--specializations* JSON] [--item-count* N] [--security-sensitive* BOOL] [--qa-attempts* N] "
        "[--tl-review-attempts* N] [--component-path* PATH] [--initial-tier* TIER] [--complexity* N] "
        "[--review-iteration* N] [--no-progress-count* N] [--blocking-issues-count* N] [--speckit-task-ids* JSON] "
        "[--auto-create* BOOL]",
    ),
    "get-task-groups": ("groups", "SESSION [STATUS]"),
    "save-development-plan": ("plans", "SESSION PROMPT [PLAN] [PHASES] [CURRENT] [TOTAL] [METADATA]"),
    "get-development-plan": ("plans", "SESSION"),
    "update-plan-progress": ("plans", "SESSION PHASE STATUS [PERCENT]"),
    "save-success-criteria": ("criteria", "SESSION CRITERIA"),
    "get-success-criteria": ("criteria", "SESSION"),
    "update-success-criterion": (
        "criteria",
        "SESSION CRITERION [STATUS] [NOTES] [--status STATUS] [--actual TEXT] [--evidence TEXT]",
    ),
    # Tokens and skill outputs
    "log-tokens": ("tokens", "SESSION AGENT TOKENS [AGENT_ID] [--agent-id ID] [--model MODEL]"),
    "token-summary": ("tokens", "SESSION [BY]"),
    "save-skill-output": ("outputs", "SESSION SKILL JSON [OUTPUT] [--agent AGENT] [--group GROUP]"),
    "get-skill-output": ("outputs", "SESSION SKILL [IN_GROUP] [--agent AGENT] [--group GROUP]"),
    "get-skill-output-all": ("outputs", "SESSION [SKILL] [--agent AGENT] [--group GROUP]"),
    "check-skill-evidence": ("outputs", "SESSION SKILLS [--agent AGENT] [--since|--within-minutes MINUTES]"),
    # Context packages, consumption, learning
    "save-context-package": ("packages", "SESSION GROUP TYPE FILE PRODUCER CONSUMERS PRIORITY SUMMARY [--supersedes ID]"),
    "get-context-packages": ("packages", "SESSION GROUP AGENT [LIMIT] [--include-consumed]"),
    "mark-context-consumed": ("packages", "PACKAGE AGENT [ITERATION]"),
    "update-context-references": ("packages", "GROUP SESSION PACKAGES"),
    "save-consumption": ("consumption", "SESSION GROUP AGENT ITERATION [PACKAGE]"),
    "get-consumption": ("consumption", "SESSION [AGENT] [TYPE] [--group-id GROUP] [--agent-type AGENT] [--limit N]"),
    "save-error-pattern": (
        "patterns",
        "PROJECT TYPE MESSAGE SOLUTION [FIX] [--lang LANG] [--context-hints JSON] [--stack-pattern JSON] [--confidence N]",
    ),
    "get-error-patterns": ("patterns", "PROJECT [--lang LANG] [--min-confidence N] [--limit N] [--error-type TYPE]"),
    "update-error-confidence": ("patterns", "HASH PROJECT OUTCOME"),
    "cleanup-error-patterns": ("patterns", "[PROJECT] [--max-age-days N]"),
    "save-strategy": (
        "strategies",
        "PROJECT TOPIC INSIGHT [TEXT] [OUTCOME] [--lang LANG] [--framework NAME] [--strategy-id ID]",
    ),
    "get-strategies": (
        "strategies",
        "PROJECT [--lang LANG] [--framework NAME] [--topic|--strategy-type TOPIC] [--limit N]",
    ),
    "update-strategy-helpfulness": ("strategies", "ID [INCREMENT]"),
    "extract-strategies": ("strategies", "SESSION [GROUP] [PROJECT] [--lang LANG] [--framework NAME]"),
    # Query and maintenance
    "query": ("upkeep", "SQL..."),
    "integrity-check": ("upkeep", ""),
    "recover-db": ("upkeep", ""),
    "diagnose-group-ids": ("upkeep", "[--fix]"),
    "route": (
        "router",
        "[--current-agent AGENT] [--status STATUS] [--session-id ID] [--group-id GROUP] "
        "[--testing-mode full|minimal|disabled] [--db PATH]",
    ),
    # The programs that stood beside bazinga-db
    "auto-logger": ("auto_logger", "DB SESSION AGENT CONTENT [ITERATION] [AGENT_ID]"),
    "init-db": ("readiness", "[DB]"),
    "init-session": ("readiness", "[--session-id ID] [--db PATH] [--project-root DIR] [--check-only] [--json]"),
    "seed-configs": (
        "readiness",
        "[--transitions] [--markers] [--rules] [--all] [--db PATH] [--project-root DIR] [--auto-init-db]",
    ),
    "detect-paths": ("upkeep", ""),
    "help": ("upkeep", "[COMMAND]"),
}

# These say what is wrong as JSON, on standard error.
JSON_ERRORS = frozenset({"get-session", "update-session-status", "update-session", "create-task-group", "update-task-group"})
# These need no database.
WITHOUT_DATABASE = frozenset({"detect-paths", "help"})
