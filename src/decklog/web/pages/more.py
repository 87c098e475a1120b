"""More: the pages that are needed less often, each with the question that it answers."""

from decklog.web.site import PageView, SiteRequest

PLACES = {
    "/views": ("Saved views", "Lists with filters that somebody named."),
    "/compare": ("Compare", "Differences between two runs, or two moments of one run."),
    "/workflow": ("Workflow", "The next agent after each report."),
    "/lines": ("Lines", "Who wrote each line of the repository: agents, people, or unknown."),
    "/trust": ("Trust", "Who the owner is, what agents may do, and what was signed."),
    "/system": ("System", "The engine, the file, who is logged in, and verification."),
}


def read(_: SiteRequest) -> PageView:
    """List these pages."""
    data = [{"path": path, "name": name, "answers": answers} for path, (name, answers) in PLACES.items()]
    return PageView("more.html", "More", "decklog --help", data, {"places": data}, place="more")
