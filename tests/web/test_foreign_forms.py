"""A form that another site sends: no address that changes something accepts it."""

import inspect
import re

import pytest

from decklog import Decklog, ManualClock
from decklog.web.application import application
from tests.pictures import sample_log
from tests.web.client import PASSWORD, Browser

# One address of every route that takes a form, and what the form would have; a login has no session yet.
FORMS = {
    "/logout": ("/logout", {}),
    "/system/sessions/{name}/end": ("/system/sessions/x/end", {}),
    "/system/verify": ("/system/verify", {"how": "anew"}),
    "/inbox/{kind}/{id:path}/decide": ("/inbox/approval/{approval}/decide", {"verdict": "granted"}),
    "/tasks/{task_id:path}/change": ("/tasks/docs/change", {"verb": "abandon"}),
    "/views/save": ("/views/save", {"name": "Mine", "path": "/runs"}),
    "/views/remove": ("/views/remove", {"name": "Mine"}),
    "/act/{verb}/{id:path}": ("/act/stop-run/commas", {}),
}


@pytest.fixture
def owned(log: Decklog, clock: ManualClock, browser: Browser) -> Browser:
    sample_log.write(log, clock)
    log.trust.bind("ana", "cli", password=PASSWORD)
    return browser


def test_every_route_that_takes_a_form_is_tried() -> None:
    posts = re.findall(r'Route\("([^"]+)", [^\n]*methods=\["POST"\]', inspect.getsource(application))
    assert set(posts) - {"/login"} == FORMS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("route", FORMS)
@pytest.mark.parametrize("token", [None, "guessed"])
def test_a_form_without_a_token_of_the_session_changes_nothing(
    log: Decklog, owned: Browser, route: str, token: str | None
) -> None:
    (approval, *_) = log.approvals.find(state="open")
    path, form = FORMS[route]
    before = log.journal.verify().entries
    fields = {**form, "reason": "x", "proof": PASSWORD, **({"token": token} if token else {})}
    answer = owned.post(path.format(approval=approval.id), fields)
    assert answer.status == 403, answer.text
    assert log.journal.verify().entries == before
    assert owned.get("/now").status == 200
