"""What is done on the System page: a session is ended, the log is verified. Neither changes the log."""

from decklog.core.errors import Denied
from decklog.web.site import SiteRequest

END, VERIFY = "sessions.end", "journal.verify"
# What the form that verifies a log may say beside "go on".
ANEW, STOP = "anew", "stop"


def end_session(asked: SiteRequest) -> str:
    """End the session that a form names; one's own too, which leads to the login."""
    name = asked.path["name"]
    _check_token(asked, END, name)
    asked.site.sessions.end(name)
    # Its stream hears of it now, and whoever looks at the list.
    asked.site.feed.renew()
    return "/system"


def verify(asked: SiteRequest) -> str:
    """Have the log verified, unless it is just being so, from where it was left or from its beginning; or have that stopped."""
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
