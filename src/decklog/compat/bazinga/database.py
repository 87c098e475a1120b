"""The class under bazinga's name: every part in one."""

from decklog.compat.bazinga.knowledge.consumption import Consumptions
from decklog.compat.bazinga.knowledge.packages import Packages
from decklog.compat.bazinga.knowledge.patterns import Patterns
from decklog.compat.bazinga.knowledge.strategies import Strategies
from decklog.compat.bazinga.logs.events import Events
from decklog.compat.bazinga.logs.logs import Logs
from decklog.compat.bazinga.logs.outputs import Outputs
from decklog.compat.bazinga.logs.reasoning import Reasoning
from decklog.compat.bazinga.router import Router
from decklog.compat.bazinga.upkeep import Upkeep
from decklog.compat.bazinga.work.dashboard import Dashboard
from decklog.compat.bazinga.work.plans import Plans


class BazingaDB(
    Dashboard,
    Logs,
    Reasoning,
    Events,
    Plans,
    Outputs,
    Packages,
    Consumptions,
    Patterns,
    Strategies,
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
