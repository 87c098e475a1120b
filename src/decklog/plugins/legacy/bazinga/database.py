"""The class under bazinga's name: every part in one."""

from decklog.plugins.legacy.bazinga.knowledge.consumption import Consumptions
from decklog.plugins.legacy.bazinga.knowledge.packages import Packages
from decklog.plugins.legacy.bazinga.knowledge.patterns import BazingaPatterns
from decklog.plugins.legacy.bazinga.knowledge.strategies import BazingaStrategies
from decklog.plugins.legacy.bazinga.logs.events import Events
from decklog.plugins.legacy.bazinga.logs.logs import Logs
from decklog.plugins.legacy.bazinga.logs.outputs import BazingaOutputs
from decklog.plugins.legacy.bazinga.logs.reasoning import Reasoning
from decklog.plugins.legacy.bazinga.router import Router
from decklog.plugins.legacy.bazinga.upkeep import Upkeep
from decklog.plugins.legacy.bazinga.work.dashboard import Dashboard
from decklog.plugins.legacy.bazinga.work.plans import BazingaPlans


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
