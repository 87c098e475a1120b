"""More: the pages that are needed less often, each with the question that it answers."""

from decklog.web.site import PageView, SiteRequest

PLACES = {
    "/views": ("Saved views", "Lists with filters that somebody named."),
    "/compare": ("Compare", "What differs between two runs, or between two moments of one."),
    "/workflow": ("Workflow", "Who comes next after each report."),
    "/lines": ("Lines", "Who wrote which line of the repository: agents, people, or nobody knows."),
    "/trust": ("Trust", "Who the manager is, what agents may do, and what was signed."),
    "/system": ("System", "The engine, the file, who is logged in, and whether the log is whole."),
}


def read(_: SiteRequest) -> PageView:
    """List these pages."""
    data = [{"path": path, "name": name, "answers": answers} for path, (name, answers) in PLACES.items()]
    return PageView("more.html", "More", "decklog --help", data, {"places": data}, place="more")
