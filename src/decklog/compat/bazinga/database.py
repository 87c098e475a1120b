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
