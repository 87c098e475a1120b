"""Access from other machines needs TLS and a password, and answers to one name."""

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from decklog import Decklog
from decklog.core.errors import Invalid, Unavailable
from decklog.web.application import application
from decklog.web.hosts import Elsewhere, Names, Password
from decklog.web.server import listening
from decklog.web.sessions import MOST_WRONG, PAUSE_SECONDS
from tests.every import every
from tests.programs import call
from tests.web.client import Browser, make_browser, send_request
from tests.web.serving import Server, free_port

WORDS = " ".join(("some", "words", "for", "a", "test"))
PROXIED = Names("decklog.example", 8471, "proxy")


def certificate(folder: Path) -> tuple[Path, Path]:
    """Create a self-signed certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    begin = datetime.now(UTC) - timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(begin).not_valid_after(begin + timedelta(days=9))
    content = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "cert.pem").write_bytes(content)
    (folder / "key.pem").write_bytes(key.private_bytes(*kind))
    return folder / "cert.pem", folder / "key.pem"


def password_file(folder: Path, text: str = WORDS, mode: int = 0o600) -> str:
    path = folder / "password"
    path.write_text(f"{text}\n")
    path.chmod(mode)
    return str(path)


@pytest.fixture
def proxied(log: Decklog) -> Iterator[Browser]:
    """A dashboard behind a proxy, and a browser; the test sets all headers."""
    browser = make_browser(log, password=Password(WORDS))
    site = replace(browser.site, names=PROXIED)
    with browser.runner:
        yield Browser(site, browser.seconds, application(site), runner=browser.runner)


def request(browser: Browser, method: str, url: str, body: str = "", **headers: str) -> Any:
    fields = {"host": "decklog.example", "sec-fetch-site": "same-origin", **headers}
    fields |= {"origin": "https://decklog.example", "content-type": "application/x-www-form-urlencoded"} if body else {}
    pairs = [(name.replace("_", "-"), value) for name, value in fields.items()]
    return browser.runner.run(send_request(browser.app, method, url, pairs, body.encode()))


REFUSED: dict[str, dict[str, str]] = {
    "nothing but an address": {"host": "0.0.0.0"},
    "no password": {"host": "192.0.2.7", "proxy": "decklog.example", "password_file": ""},
    "a certificate without its key": {"host": "192.0.2.7", "certificate": "cert.pem"},
    "TLS and a proxy": {"host": "192.0.2.7", "certificate": "cert.pem", "certificate_key": "key.pem", "proxy": "decklog.example"},
    "files that are none": {"host": "192.0.2.7", "certificate": "password", "certificate_key": "password"},
    "files that are not there": {"host": "192.0.2.7", "certificate": "nothing.pem", "certificate_key": "nothing.pem"},
    "an address that nobody can call": {"host": "0.0.0.0", "certificate": "cert.pem", "certificate_key": "key.pem"},
    "a name with a path": {"host": "192.0.2.7", "proxy": "decklog.example/x"},
    "a name with a user": {"host": "192.0.2.7", "proxy": "x@decklog.example"},
    "two names": {"host": "192.0.2.7", "proxy": "a.example,b.example"},
    "no name": {"host": "192.0.2.7", "proxy": " "},
    "a password alone": {},
}


def test_remote_access_needs_tls_a_name_and_a_password(tmp_path: Path) -> None:
    certificate(tmp_path)
    path = password_file(tmp_path)

    @every("why", list(REFUSED))
    def is_refused(why: str) -> None:
        settings = {name: str(tmp_path / value) if name.startswith("cert") else value for name, value in REFUSED[why].items()}
        server = Elsewhere(**{"password_file": path, **settings})
        with pytest.raises(Invalid):
            server.names(8471), replace(server, password_file=server.password_file or None).password()

    is_refused()


def test_short_or_readable_password_file_is_refused(tmp_path: Path) -> None:
    for text, mode in ((WORDS, 0o640), (WORDS, 0o604), ("short", 0o600), ("", 0o600)):
        with pytest.raises(Invalid):
            Elsewhere("h", password_file=password_file(tmp_path, text, mode)).password()
    with pytest.raises(Invalid):
        Elsewhere("h", password_file=str(tmp_path / "nothing")).password()
    assert Elsewhere("h", password_file=password_file(tmp_path)).password().fits(WORDS)


def test_names_follow_from_the_settings(tmp_path: Path) -> None:
    files = dict(zip(("certificate", "certificate_key"), map(str, certificate(tmp_path)), strict=True))
    assert Elsewhere("192.0.2.7", **files).names(8471).origin == "https://192.0.2.7:8471"
    assert Elsewhere("2001:db8::7", **files).names(8471).origin == "https://[2001:db8::7]:8471"
    assert Elsewhere("0.0.0.0", "Build.example", **files).names(8471).host == "build.example:8471"
    assert Elsewhere(proxy="Decklog.example").names(8471).host == "decklog.example"
    assert Elsewhere(proxy="decklog.example:8443").names(8471).origin == "https://decklog.example:8443"


def test_no_option_disables_the_login(tmp_path: Path) -> None:
    help_text = call(["serve", "--help"], cwd=tmp_path, variables={}).out.decode()
    assert not any(word in help_text.lower() for word in ("insecure", "no-login", "no-auth", "disable"))
    Decklog.open(tmp_path / "log.db").close()
    done = call(["serve", "--host", "0.0.0.0", "--json", "--db", str(tmp_path / "log.db")], cwd=tmp_path, variables={})
    assert b"by TLS or behind a proxy" in done.out


def test_address_of_another_machine_is_refused() -> None:
    with pytest.raises(Unavailable):
        listening(free_port(), "192.0.2.7")


def test_login_through_the_proxy_takes_the_password_and_sets_a_secure_cookie(proxied: Browser) -> None:
    assert request(proxied, "GET", "/now").headers["location"] == "/login?next=/now"
    assert 'name="password"' in request(proxied, "GET", "/login").text
    assert request(proxied, "POST", "/login", urlencode({"password": "wrong"})).headers["location"] == "/login?wrong=password"
    answer = request(proxied, "POST", "/login", urlencode({"password": WORDS}))
    cookie = answer.headers["set-cookie"]
    assert answer.status == 303
    assert cookie.endswith("; Secure")
    assert request(proxied, "GET", "/now", cookie=cookie.partition(";")[0]).status == 200


def test_behind_a_proxy_other_hosts_and_origins_are_refused(proxied: Browser) -> None:
    for host in ("127.0.0.1:8471", "localhost:8471", "decklog.example:8471", "DECKLOG.example", "attacker.example"):
        assert request(proxied, "GET", "/login", host=host).status == 421
    body = urlencode({"password": WORDS})
    for origin in ("http://decklog.example", "https://attacker.example", "null"):
        pairs = [("host", "decklog.example"), ("origin", origin), ("content-type", "application/x-www-form-urlencoded")]
        assert proxied.runner.run(send_request(proxied.app, "POST", "/login", pairs, body.encode())).status == 403


def test_wrong_passwords_delay_the_login_and_not_decisions(proxied: Browser) -> None:
    for _ in range(MOST_WRONG):
        assert request(proxied, "POST", "/login", urlencode({"password": "wrong"})).headers["location"] == "/login?wrong=password"
    assert request(proxied, "POST", "/login", urlencode({"password": WORDS})).headers["location"] == "/login?wrong=password"
    assert proxied.site.sessions.proofs.pause() == 0
    proxied.seconds.now += PAUSE_SECONDS + 1
    assert request(proxied, "POST", "/login", urlencode({"password": WORDS})).headers["location"] == "/"


def test_login_without_a_configured_password_takes_none(log: Decklog) -> None:
    browser = make_browser(log)
    with browser.runner:
        assert 'name="password"' not in browser.get("/login").text
        assert browser.post("/login", {"password": ""}).headers["location"] == "/login?wrong=code"


@pytest.mark.slow
def test_a_server_with_a_certificate_speaks_tls_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    Decklog.open(path).close()
    cert, key = certificate(tmp_path)
    words = ("--host", "127.0.0.1", "--tls-cert", str(cert), "--tls-key", str(key), "--password-file", password_file(tmp_path))
    server = Server(str(path), tmp_path, *words).start()
    try:
        assert server.origin == f"https://127.0.0.1:{server.port}"
        trusting = ssl.create_default_context(cafile=str(cert))
        trusting.check_hostname = False
        with closing(http.client.HTTPSConnection("127.0.0.1", server.port, context=trusting, timeout=30)) as connection:
            form = {"Origin": server.origin, "Content-Type": "application/x-www-form-urlencoded"}
            connection.request("POST", "/login", urlencode({"password": WORDS}), form)
            answer = connection.getresponse()
            assert (answer.status, "Secure" in str(answer.getheader("set-cookie"))) == (303, True)
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as plain, pytest.raises(OSError):
            plain.request("GET", "/login")
            plain.getresponse()
        assert WORDS not in Path(f"/proc/{server.pid}/cmdline").read_text()
        assert WORDS not in json.dumps(server.printed)
    finally:
        server.stop()
