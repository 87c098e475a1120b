"""Every command: the module that answers it, and its usage line."""

# Functions of these names, with underscores, answer the commands; their modules are imported when they are called.
COMMANDS: dict[str, tuple[str, str]] = {
    # Sessions and state
    "create-session": ("work.sessions", "ID MODE REQUIREMENTS [--initial-branch BRANCH] [--metadata JSON]"),
    "get-session": ("work.sessions", "ID"),
    "list-sessions": ("work.sessions", "[LIMIT]"),
    "update-session-status": ("work.sessions", "ID STATUS"),
    "update-session": ("work.sessions", "ID [--status|-s STATUS]"),
    "complete-session": ("work.sessions", "ID"),
    "save-state": ("work.states", "SESSION TYPE [JSON] [--state-file PATH] [--group-id GROUP]"),
    "get-state": ("work.states", "SESSION TYPE [--group-id GROUP]"),
    "dashboard-snapshot": ("work.dashboard", "SESSION"),
    # Logs, reasoning, events
    "log-interaction": ("logs.logs", "SESSION AGENT CONTENT [ITERATION] [AGENT_ID]"),
    "stream-logs": ("logs.logs", "SESSION [LIMIT] [OFFSET]"),
    "get-logs": ("logs.logs", "SESSION [--limit N] [--offset N] [--agent-type AGENT] [--since TIME]"),
    "save-reasoning": (
        "logs.reasoning",
        "SESSION GROUP AGENT PHASE [CONTENT] [--content-file PATH] [--agent-id ID] [--iteration N] "
        "[--confidence high|medium|low] [--references JSON] [--tokens N]",
    ),
    "get-reasoning": (
        "logs.reasoning",
        "SESSION [GROUP] [AGENT] [PHASE] [--group-id GROUP] [--agent-type AGENT] [--phase PHASE] [--limit N] "
        "[--format json|prompt-summary]",
    ),
    "reasoning-timeline": ("logs.reasoning", "SESSION [--group-id GROUP] [--format json|markdown]"),
    "check-mandatory-phases": ("logs.reasoning", "SESSION GROUP AGENT"),
    "save-event": (
        "logs.events",
        "SESSION SUBTYPE [PAYLOAD] [--payload-file PATH] [--idempotency-key KEY] [--group-id GROUP]",
    ),
    "get-events": ("logs.events", "SESSION [SUBTYPE] [MOST] [--limit N] [--group-id GROUP]"),
    "save-investigation-iteration": ("work.states", "SESSION GROUP ITERATION STATUS [--state-file PATH] [--event-file PATH]"),
    # Task groups, plans, criteria
    "create-task-group": (
        "work.groups",
        "GROUP SESSION NAME [STATUS] [ASSIGNED_TO] [--specializations JSON] [--item-count N] [--component-path PATH] "
        "[--initial-tier TIER] [--complexity N] [--security-sensitive 0|1]",
    ),
    "update-task-group": (
        "work.groups",
        "GROUP SESSION [--status* STATUS] [--assigned-to* AGENT] [--revision-count* N] [--last-review-status* STATUS] "
        "[--name* NAME] [--specializations* JSON] [--item-count* N] [--security-sensitive* BOOL] [--qa-attempts* N] "
        "[--tl-review-attempts* N] [--component-path* PATH] [--initial-tier* TIER] [--complexity* N] "
        "[--review-iteration* N] [--no-progress-count* N] [--blocking-issues-count* N] [--speckit-task-ids* JSON] "
        "[--auto-create* BOOL]",
    ),
    "get-task-groups": ("work.groups", "SESSION [STATUS]"),
    "save-development-plan": ("work.plans", "SESSION PROMPT [PLAN] [PHASES] [CURRENT] [TOTAL] [METADATA]"),
    "get-development-plan": ("work.plans", "SESSION"),
    "update-plan-progress": ("work.plans", "SESSION PHASE STATUS [PERCENT]"),
    "save-success-criteria": ("work.criteria", "SESSION CRITERIA"),
    "get-success-criteria": ("work.criteria", "SESSION"),
    "update-success-criterion": (
        "work.criteria",
        "SESSION CRITERION [STATUS] [NOTES] [--status STATUS] [--actual TEXT] [--evidence TEXT]",
    ),
    # Tokens and skill outputs
    "log-tokens": ("logs.tokens", "SESSION AGENT TOKENS [AGENT_ID] [--agent-id ID] [--model MODEL]"),
    "token-summary": ("logs.tokens", "SESSION [BY]"),
    "save-skill-output": ("logs.outputs", "SESSION SKILL JSON [OUTPUT] [--agent AGENT] [--group GROUP]"),
    "get-skill-output": ("logs.outputs", "SESSION SKILL [IN_GROUP] [--agent AGENT] [--group GROUP]"),
    "get-skill-output-all": ("logs.outputs", "SESSION [SKILL] [--agent AGENT] [--group GROUP]"),
    "check-skill-evidence": ("logs.outputs", "SESSION SKILLS [--agent AGENT] [--since|--within-minutes MINUTES]"),
    # Context packages, consumption, learning
    "save-context-package": (
        "knowledge.packages",
        "SESSION GROUP TYPE FILE PRODUCER CONSUMERS PRIORITY SUMMARY [--supersedes ID]",
    ),
    "get-context-packages": ("knowledge.packages", "SESSION GROUP AGENT [LIMIT] [--include-consumed]"),
    "mark-context-consumed": ("knowledge.packages", "PACKAGE AGENT [ITERATION]"),
    "update-context-references": ("knowledge.packages", "GROUP SESSION PACKAGES"),
    "save-consumption": ("knowledge.consumption", "SESSION GROUP AGENT ITERATION [PACKAGE]"),
    "get-consumption": ("knowledge.consumption", "SESSION [AGENT] [TYPE] [--group-id GROUP] [--agent-type AGENT] [--limit N]"),
    "save-error-pattern": (
        "knowledge.patterns",
        "PROJECT TYPE MESSAGE SOLUTION [FIX] [--lang LANG] [--context-hints JSON] [--stack-pattern JSON] [--confidence N]",
    ),
    "get-error-patterns": ("knowledge.patterns", "PROJECT [--lang LANG] [--min-confidence N] [--limit N] [--error-type TYPE]"),
    "update-error-confidence": ("knowledge.patterns", "HASH PROJECT OUTCOME"),
    "cleanup-error-patterns": ("knowledge.patterns", "[PROJECT] [--max-age-days N]"),
    "save-strategy": (
        "knowledge.strategies",
        "PROJECT TOPIC INSIGHT [TEXT] [OUTCOME] [--lang LANG] [--framework NAME] [--strategy-id ID]",
    ),
    "get-strategies": (
        "knowledge.strategies",
        "PROJECT [--lang LANG] [--framework NAME] [--topic|--strategy-type TOPIC] [--limit N]",
    ),
    "update-strategy-helpfulness": ("knowledge.strategies", "ID [INCREMENT]"),
    "extract-strategies": ("knowledge.strategies", "SESSION [GROUP] [PROJECT] [--lang LANG] [--framework NAME]"),
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
