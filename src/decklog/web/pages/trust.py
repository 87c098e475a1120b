"""Trust: who the manager is, what agents may do, what they may not yet, and what was signed and proven."""

from decklog.web.site import PageView, SiteRequest

PAGE = 50


def read(asked: SiteRequest) -> PageView:
    """Read the contract, its history and the latest proofs."""
    log = asked.log
    contract, history, proofs = log.trust.show(), log.trust.history(limit=PAGE), log.proofs.find(limit=PAGE)
    shown = {"contract": contract, "history": history[::-1], "proofs": proofs}
    data = {"contract": contract, "history": history, "proofs": proofs}
    return PageView("trust.html", "Trust", "decklog trust show", data, shown, place="more")
