"""All actions by verb, and their two requests: show the form, and perform the action."""

from decklog.core.errors import NotFound
from decklog.web.actions import answers, items, money, runs, tasks
from decklog.web.actions.forms import WebAction, build_view, send
from decklog.web.site import PageView, SiteRequest

ACTIONS: dict[str, WebAction] = {**runs.ACTIONS, **tasks.ACTIONS, **money.ACTIONS, **answers.ACTIONS, **items.ACTIONS}


def _find(asked: SiteRequest) -> tuple[str, WebAction]:
    verb = asked.path["verb"]
    if verb not in ACTIONS:
        raise NotFound(f"there is no action {verb!r}")
    return verb, ACTIONS[verb]


def read(asked: SiteRequest) -> PageView:
    """Read the form of an action."""
    verb, action = _find(asked)
    return build_view(asked, verb, action.describe(asked, asked.path["id"]))


def act(asked: SiteRequest) -> PageView | str:
    """Perform the action of a form."""
    verb, action = _find(asked)
    return send(asked, verb, action)
