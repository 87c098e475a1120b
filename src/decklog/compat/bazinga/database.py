"""The class under bazinga's name: every part in one."""

from decklog.compat.bazinga.consumption import Consumptions
from decklog.compat.bazinga.dashboard import Dashboard
from decklog.compat.bazinga.events import Events
from decklog.compat.bazinga.logs import Logs
from decklog.compat.bazinga.outputs import Outputs
from decklog.compat.bazinga.packages import Packages
from decklog.compat.bazinga.patterns import Patterns
from decklog.compat.bazinga.plans import Plans
from decklog.compat.bazinga.reasoning import Reasoning
from decklog.compat.bazinga.router import Router
from decklog.compat.bazinga.strategies import Strategies
from decklog.compat.bazinga.upkeep import Upkeep


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
