"""Which requests are let in: every combination of what a browser can say, held against a rule of ten lines."""

import itertools
from collections.abc import Iterator

import pytest

from decklog import Decklog
from decklog.web.login import HEADERS, LONGEST_URL, MOST_BODY
from decklog.web.sessions import COOKIE
from tests.web.asking import NAMES, Answer, Browser, Pairs, hand_on, made

HOSTS = (
    *(NAMES.host, f"127.0.0.1:{NAMES.port}", f"localhost:{NAMES.port}", f"[::1]:{NAMES.port}"),
    *(f"attacker.example:{NAMES.port}", f"{NAMES.own}.:{NAMES.port}", NAMES.own, None),
)
ORIGINS = (None, NAMES.origin, f"http://127.0.0.1:{NAMES.port}", f"http://{NAMES.own}:9999", "https://attacker.example", "null")
SITES = (None, "same-origin", "same-site", "cross-site", "none")
# How, and for what: a page, a fetch, a program of another page, a frame in it.
USES = (("navigate", "document"), ("cors", "empty"), ("no-cors", "script"), ("navigate", "iframe"))
METHODS = ("GET", "POST", "PUT")
# One address of everything that can be sent by whoever is logged in.
SENT = (
    *("/logout", "/inbox/approval/x/decide", "/tasks/x/change", "/system/sessions/x/end", "/system/verify"),
    *("/act/stop-run/x", "/views/save", "/views/remove"),
)
CREDENTIALS = ("none", "valid", "wrong", "ended")
# Spelled otherwise, meant for the same: none of them is our name.
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
    """The rule: our name, our origin, and for anything but reading our own page and session."""
    if host not in HOSTS[:1]:
        return 421
    if method == "PUT":
        return 405
    if origin not in (None, NAMES.origin):
        return 403
    if method == "POST":
        return _posted(host, origin, site, credential)
    if use == USES[3] or (site in ("same-site", "cross-site") and use != USES[0]):
        return 403
    return 200 if credential == "valid" else 303


def _posted(host: str | None, origin: str | None, site: str | None, credential: str) -> int:
    if not (site == "same-origin" or (site is None and origin is not None)):
        return 403
    return 403 if credential == "valid" else 401


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Decklog.open(tmp_path_factory.mktemp("admission") / "log.db") as log:
        browser = made(log)
        with browser.runner:
            yield browser.log_in()


def cookies(browser: Browser) -> dict[str, str | None]:
    valid = browser.cookie
    ended = browser.site.sessions.log_in(browser.site.sessions.new_link())
    assert ended is not None
    browser.site.sessions.log_out(ended)
    return {"none": None, "valid": valid, "wrong": "x" * 43, "ended": ended.id}


Cell = tuple[str | None, str | None, str | None, tuple[str, str], str, str]


async def answered(browser: Browser, cell: Cell, url: str, cookie: str | None) -> Answer:
    host, origin, site, use, method, _ = cell
    named = {"host": host, "origin": origin, "sec-fetch-site": site, "sec-fetch-mode": use[0], "sec-fetch-dest": use[1]}
    headers: Pairs = [(name, value) for name, value in named.items() if value is not None]
    headers += [("cookie", f"{COOKIE}={cookie}")] if cookie else []
    return await hand_on(browser.app, method, url, [*headers, ("content-type", "application/x-www-form-urlencoded")])


@pytest.mark.slow
def test_every_combination_of_what_a_browser_says_is_answered_as_the_rule_says(browser: Browser) -> None:
    known = cookies(browser)
    every: list[Cell] = list(itertools.product(HOSTS, ORIGINS, SITES, USES, METHODS, CREDENTIALS))
    # A page that needs a session and reads nothing, and each form without its token.
    asked = [(cell, url) for cell in every for url in (SENT if cell[4] == "POST" else ("/runs/x",))]
    cells = [cell for cell, _ in asked]

    async def ask_all() -> list[Answer]:
        return [await answered(browser, cell, url, known[cell[-1]]) for cell, url in asked]

    found = browser.runner.run(ask_all())
    # A run's address leads on to its first tab.
    wanted = [303 if status == 200 else status for status in (expected(*cell) for cell in cells)]
    wrong = [(cell, want, one.status) for cell, want, one in zip(asked, wanted, found, strict=True) if one.status != want]
    assert wrong == []
    assert len(cells) == 8 * 6 * 5 * 4 * 4 * (2 + len(SENT))
    bare = [cell for cell, one in zip(cells, found, strict=True) if not HEADERS.items() <= one.headers.items()]
    assert bare == []
    assert not any(name.startswith("access-control") for one in found for name, _ in one.pairs)


@pytest.mark.parametrize("host", ODD_HOSTS)
@pytest.mark.parametrize("url", ["/", "/events", "/login", "/static/x/page.js", "/no-such-page"])
def test_another_spelling_of_the_name_is_not_answered(browser: Browser, host: str, url: str) -> None:
    assert browser.ask("GET", url, [("host", host)]).status == 421


def test_two_names_are_no_name(browser: Browser) -> None:
    for other in ("attacker.example", NAMES.host):
        twice = [("host", NAMES.host), ("host", other)]
        assert browser.ask("GET", "/login", twice).status == 421


def test_secret_host_name_is_not_revealed_before_login(browser: Browser) -> None:
    for host in HOSTS[1:4]:
        found = browser.ask("GET", "/runs?status=running", [("host", host or "")])
        assert found.status == 421
        assert NAMES.own not in found.text
        assert not any(NAMES.own in value for value in found.headers.values())


@pytest.mark.parametrize("upgrade", ["websocket", "h2c"])
def test_nothing_is_upgraded(browser: Browser, upgrade: str) -> None:
    for url in ("/events", "/", "/login"):
        headers = [("host", NAMES.host), ("connection", "upgrade"), ("upgrade", upgrade), ("sec-fetch-site", "same-origin")]
        found = browser.ask("GET", url, headers)
        assert (found.status, found.body) == (426, b"")


def test_what_is_too_long_or_too_large_is_not_read(browser: Browser) -> None:
    host = [("host", NAMES.host), ("sec-fetch-site", "same-origin"), ("content-type", "application/x-www-form-urlencoded")]
    assert browser.ask("GET", "/login?" + "x" * LONGEST_URL, host).status == 414
    many = [(f"x-{number}", "y" * 1000) for number in range(17)]
    assert browser.ask("GET", "/login", host + many).status == 431
    announced = [*host, ("content-length", str(MOST_BODY + 1))]
    assert browser.ask("POST", "/login", announced).status == 413
    assert browser.ask("POST", "/login", [*host, ("content-length", "-1")]).status == 413
    # One that announced nothing is read up to the limit only.
    assert browser.ask("POST", "/login", host, b"token=" + b"x" * MOST_BODY).status == 413
