"""The class under bazinga's name: every part in one."""

from decklog.plugins.legacy.bazinga.knowledge import BazingaPatterns, BazingaStrategies, Consumptions, Packages
from decklog.plugins.legacy.bazinga.logs import BazingaOutputs, Events, Logs, Reasoning
from decklog.plugins.legacy.bazinga.sessions import Dashboard
from decklog.plugins.legacy.bazinga.upkeep import Router, Upkeep
from decklog.plugins.legacy.bazinga.work import BazingaPlans


class BazingaDB(
    Dashboard,
    Logs,
    Reasoning,
    Events,
    BazingaPlans,
    BazingaOutputs,
    Packages,
    Consumptions,
    BazingaPatterns,
    BazingaStrategies,
    Router,
    Upkeep,
):
    """A bazinga database that is a Decklog log: `BazingaDB(db_path, quiet=False)`.

    What is refused raises ValueError; the methods that always answered `{"success": False, …}` still do.
    """

    # Texts of errors that mean a damaged file, and of those that never do.
    CORRUPTION_ERRORS = ("database disk image is malformed", "malformed database schema", "file is not a database")
    QUERY_ERRORS = ("no such column", "no such table", "syntax error", "constraint failed")
    # Tables in the order in which rows refer to each other.
    SALVAGE_TABLE_ORDER = (
        *("sessions", "task_groups", "orchestration_logs", "state_snapshots", "token_usage", "skill_outputs"),
        *("development_plans", "success_criteria", "context_packages", "context_package_consumers", "consumption_scope"),
        *("error_patterns", "strategies"),
    )
