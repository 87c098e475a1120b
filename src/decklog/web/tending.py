"""Actions of the System page: end a session, verify the log. Neither changes the log."""

from decklog.core.errors import Denied
from decklog.web.site import SiteRequest

END, VERIFY = "sessions.end", "journal.verify"
# What the form of a verification may ask for instead of continuing.
ANEW, STOP = "anew", "stop"


def end_session(asked: SiteRequest) -> str:
    """End the session that a form names. Ending one's own session leads to the login."""
    name = asked.path["name"]
    _check_token(asked, END, name)
    asked.site.sessions.end(name)
    # Its stream ends now, and open lists of sessions reload.
    asked.site.feed.renew()
    return "/system"


def verify(asked: SiteRequest) -> str:
    """Start a verification from the last position or from the beginning, or stop the one that runs."""
    _check_token(asked, VERIFY, "")
    how, verifying = asked.form.get("how"), asked.site.verifying
    if how == STOP:
        verifying.stop()
    else:
        verifying.begin(asked.log, asked.site.feed.renew, anew=how == ANEW)
    asked.site.feed.renew()
    return "/system"


def _check_token(asked: SiteRequest, verb: str, record_id: str) -> None:
    if not asked.session.is_form_token(asked.form.get("token", ""), verb, record_id):
        raise Denied("this form is not of this session", hint="Reload the page and try again.")
