"""More: the places that are looked at less often, each with what it answers."""

from decklog.web.site import PageView, SiteRequest

PLACES = {
    "/tasks": ("Tasks", "What is under way and what is held, over all runs."),
    "/compare": ("Compare", "What differs between two runs, or between two moments of one."),
    "/memory": ("Memory", "What was learned, why it is recalled, and where it comes from."),
    "/workflow": ("Workflow", "Who comes next after each report."),
    "/lines": ("Lines", "Who wrote which line of the repository: agents, people, or nobody knows."),
    "/trust": ("Trust", "Who the manager is, what agents may do, and what was signed."),
    "/system": ("System", "The engine, the file, who is logged in, and whether the log is whole."),
}


def read(_: SiteRequest) -> PageView:
    """List them."""
    data = [{"path": path, "name": name, "answers": answers} for path, (name, answers) in PLACES.items()]
    return PageView("more.html", "More", "decklog --help", data, {"places": data}, place="more")
