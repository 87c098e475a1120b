"""Which requests are let in: every combination of headers, compared with a rule of ten lines."""

import itertools
from collections.abc import Iterator

import pytest

from decklog import Decklog
from decklog.web.login import HEADERS, LONGEST_URL, MOST_BODY
from decklog.web.sessions import COOKIE
from tests.web.client import NAMES, Answer, Browser, Pairs, make_browser, send_request

HOSTS = (
    *(NAMES.host, f"127.0.0.1:{NAMES.port}", f"localhost:{NAMES.port}", f"[::1]:{NAMES.port}"),
    *(f"attacker.example:{NAMES.port}", f"{NAMES.own}.:{NAMES.port}", NAMES.own, None),
)
ORIGINS = (None, NAMES.origin, f"http://127.0.0.1:{NAMES.port}", f"http://{NAMES.own}:9999", "https://attacker.example", "null")
SITES = (None, "same-origin", "same-site", "cross-site", "none")
# Mode and destination: a page, a fetch, a script of another page, a frame in it.
USES = (("navigate", "document"), ("cors", "empty"), ("no-cors", "script"), ("navigate", "iframe"))
METHODS = ("GET", "POST", "PUT")
# One address of every route that takes a form after the login.
SENT = (
    *("/logout", "/inbox/approval/x/decide", "/tasks/x/change", "/system/sessions/x/end", "/system/verify"),
    *("/act/stop-run/x", "/views/save", "/views/remove"),
)
CREDENTIALS = ("none", "valid", "wrong", "ended")
# Other spellings of the host; each is refused.
ODD_HOSTS = (
    *(NAMES.host.upper(), f"{NAMES.own}:{NAMES.port + 1}", f"{NAMES.own}:0{NAMES.port}", f" {NAMES.host}", f"{NAMES.host} ", ""),
    *(
        f"127.1:{NAMES.port}",
        f"0.0.0.0:{NAMES.port}",
        f"2130706433:{NAMES.port}",
        f"0x7f.1:{NAMES.port}",
        f"localhost.:{NAMES.port}",
    ),
    *(f"[::ffff:127.0.0.1]:{NAMES.port}", f"[0:0:0:0:0:0:0:1]:{NAMES.port}", f"::1:{NAMES.port}", f"user@{NAMES.host}"),
    *(f"{NAMES.host}@attacker.example", f"{NAMES.host}.attacker.example", f"x.{NAMES.host}", f"{NAMES.host},attacker.example"),
)


def expected(host: str | None, origin: str | None, site: str | None, use: tuple[str, str], method: str, credential: str) -> int:
    """Return the status that the rule demands."""
    if host not in HOSTS[:1]:
        return 421
    if method == "PUT":
        return 405
    if origin not in (None, NAMES.origin):
        return 403
    if method == "POST":
        return expected_of_post(host, origin, site, credential)
    if use == USES[3] or (site in ("same-site", "cross-site") and use != USES[0]):
        return 403
    return 200 if credential == "valid" else 303


def expected_of_post(host: str | None, origin: str | None, site: str | None, credential: str) -> int:
    if not (site == "same-origin" or (site is None and origin is not None)):
        return 403
    return 403 if credential == "valid" else 401


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Decklog.open(tmp_path_factory.mktemp("admission") / "log.db") as log:
        browser = make_browser(log)
        with browser.runner:
            yield browser.log_in()


def cookies(browser: Browser) -> dict[str, str | None]:
    valid = browser.cookie
    ended = browser.site.sessions.log_in(browser.site.sessions.new_link())
    assert ended is not None
    browser.site.sessions.log_out(ended)
    return {"none": None, "valid": valid, "wrong": "x" * 43, "ended": ended.id}


Cell = tuple[str | None, str | None, str | None, tuple[str, str], str, str]


async def send(browser: Browser, cell: Cell, url: str, cookie: str | None) -> Answer:
    host, origin, site, use, method, _ = cell
    fields = {"host": host, "origin": origin, "sec-fetch-site": site, "sec-fetch-mode": use[0], "sec-fetch-dest": use[1]}
    headers: Pairs = [(name, value) for name, value in fields.items() if value is not None]
    headers += [("cookie", f"{COOKIE}={cookie}")] if cookie else []
    return await send_request(browser.app, method, url, [*headers, ("content-type", "application/x-www-form-urlencoded")])


@pytest.mark.slow
def test_every_combination_of_request_headers_follows_the_rule(browser: Browser) -> None:
    known = cookies(browser)
    every: list[Cell] = list(itertools.product(HOSTS, ORIGINS, SITES, USES, METHODS, CREDENTIALS))
    # A page that needs a session and reads nothing, and each form without its token.
    requests = [(cell, url) for cell in every for url in (SENT if cell[4] == "POST" else ("/runs/x",))]
    cells = [cell for cell, _ in requests]

    async def ask_all() -> list[Answer]:
        return [await send(browser, cell, url, known[cell[-1]]) for cell, url in requests]

    answers = browser.runner.run(ask_all())
    # A run's address leads on to its first tab.
    statuses = [303 if status == 200 else status for status in (expected(*cell) for cell in cells)]
    compared = zip(requests, statuses, answers, strict=True)
    wrong = [(sent, status, answer.status) for sent, status, answer in compared if answer.status != status]
    assert wrong == []
    assert len(cells) == 8 * 6 * 5 * 4 * 4 * (2 + len(SENT))
    bare = [cell for cell, answer in zip(cells, answers, strict=True) if not HEADERS.items() <= answer.headers.items()]
    assert bare == []
    assert not any(name.startswith("access-control") for answer in answers for name, _ in answer.pairs)


@pytest.mark.parametrize("host", ODD_HOSTS)
@pytest.mark.parametrize("url", ["/", "/events", "/login", "/static/x/page.js", "/no-such-page"])
def test_other_spelling_of_the_host_is_refused(browser: Browser, host: str, url: str) -> None:
    assert browser.request("GET", url, [("host", host)]).status == 421


def test_two_host_headers_are_refused(browser: Browser) -> None:
    for other in ("attacker.example", NAMES.host):
        twice = [("host", NAMES.host), ("host", other)]
        assert browser.request("GET", "/login", twice).status == 421


def test_secret_host_name_is_not_revealed_before_login(browser: Browser) -> None:
    for host in HOSTS[1:4]:
        answer = browser.request("GET", "/runs?status=running", [("host", host or "")])
        assert answer.status == 421
        assert NAMES.own not in answer.text
        assert not any(NAMES.own in value for value in answer.headers.values())


@pytest.mark.parametrize("upgrade", ["websocket", "h2c"])
def test_nothing_is_upgraded(browser: Browser, upgrade: str) -> None:
    for url in ("/events", "/", "/login"):
        headers = [("host", NAMES.host), ("connection", "upgrade"), ("upgrade", upgrade), ("sec-fetch-site", "same-origin")]
        answer = browser.request("GET", url, headers)
        assert (answer.status, answer.body) == (426, b"")


def test_oversized_requests_are_refused(browser: Browser) -> None:
    host = [("host", NAMES.host), ("sec-fetch-site", "same-origin"), ("content-type", "application/x-www-form-urlencoded")]
    assert browser.request("GET", "/login?" + "x" * LONGEST_URL, host).status == 414
    many = [(f"x-{number}", "y" * 1000) for number in range(17)]
    assert browser.request("GET", "/login", host + many).status == 431
    announced = [*host, ("content-length", str(MOST_BODY + 1))]
    assert browser.request("POST", "/login", announced).status == 413
    assert browser.request("POST", "/login", [*host, ("content-length", "-1")]).status == 413
    # One that announced nothing is read up to the limit only.
    assert browser.request("POST", "/login", host, b"token=" + b"x" * MOST_BODY).status == 413
