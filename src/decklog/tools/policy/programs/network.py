"""Judging of programs that talk to other machines: whom they talk to, and what they send."""

import re
from typing import TYPE_CHECKING

from decklog.tools.policy.programs.use import Use
from decklog.tools.policy.shell.words import UNKNOWN, Word

if TYPE_CHECKING:
    from decklog.tools.policy.programs.judging import Bench

_METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
_RUNS = ("-e", "-c", "--exec", "--sh-exec", "--lua-exec")
_SENT_FILE = re.compile(r"(?:[\w.\[\]-]*=)?[@<](.+)", re.DOTALL)
_LEAKS = {"secret", "environment"}


def host_of(bench: "Bench", url: str) -> str:
    """Give the host a URL names, in lower case, UNKNOWN if that can't be told."""
    found = bench.policy.patterns["url"].match(url)
    return found[1].lower() if found and UNKNOWN not in found[1] else UNKNOWN


def is_local(bench: "Bench", host: str) -> bool:
    """Tell whether a host is this machine."""
    return host in bench.policy.names["loopback"] or host.startswith("127.") or host.endswith(".localhost")


def check_url(bench: "Bench", use: Use) -> None:
    """Judge a URL by its host; `file:` URLs are files."""
    for word in use.arguments.operands:
        if word.text.lower().startswith("file:"):
            bench.path("read", Word(word.text[5:].replace("//", "/", 1)), use.scope, use.call.text)
            continue
        if _is_not_url(word.text, use.name):
            continue
        host = host_of(bench, word.text)
        if host in bench.policy.names["metadata_hosts"]:
            bench.report("cloud-metadata", use.call.text)
        if not is_local(bench, host) and not (word.text.startswith(":") and use.name in ("http", "https", "xh")):
            bench.report("network-host", use.call.text)


def _is_not_url(text: str, name: str) -> bool:
    """Tell whether an operand of an HTTP client is a method or a field."""
    return text in _METHODS or (name in ("http", "https", "xh", "httpie") and "=" in text and "://" not in text)


def check_data(bench: "Bench", use: Use) -> None:
    """Judge data to be sent: `@name` and `field=@name` send a file."""
    for word in use.arguments.operands:
        found = _SENT_FILE.match(word.text)
        if found and found[1] != "-":
            bench.path("upload", Word(found[1].split(";")[0]), use.scope, use.call.text)


def check_network(bench: "Bench", use: Use) -> None:
    """Judge a client: secrets must not go to another machine, by any way in."""
    hosts = [host_of(bench, word.text) for word in use.operands if not _is_not_url(word.text, use.name)]
    if not hosts:
        bench.report("network-host", use.call.text)
    is_remote = any(not is_local(bench, host) for host in hosts) or not hosts
    if is_remote and use.taint & _LEAKS and not _only_in_header(use):
        bench.report("exfiltration", use.call.text)
    for option, word in use.arguments.values:
        if use.program.options.get(option) == "write":
            use.scope.wrote(word.text, Word(UNKNOWN, frozenset({"network"})))
    if use.name == "wget" or use.arguments.has(("-O", "--remote-name")):
        for word in use.operands:
            name = word.text.rstrip("/").rsplit("/", 1)[-1]
            place = use.arguments.value("-P", "--directory-prefix", "--output-dir")
            use.scope.wrote(f"{place.text}/{name}" if place else name, Word(UNKNOWN, frozenset({"network"})))


def _only_in_header(use: Use) -> bool:
    """Tell whether a secret is only used to log in: a header or a user name, not data or an address."""
    if use.stdin_taint & _LEAKS:
        return False
    logins = [word for option, word in use.arguments.values if option in ("-H", "--header", "-u", "--user")]
    tainted = [word for word in use.call.argv if word.taint & _LEAKS]
    return all(any(word.text.endswith(login.text) for login in logins) for word in tainted)


def check_lookup(bench: "Bench", use: Use) -> None:
    """Judge a name lookup or a ping: a name built at run time can carry data out."""
    if any(not word.is_known or word.taint & _LEAKS for word in use.operands):
        bench.report("network-host", use.call.text)


def check_sockets(bench: "Bench", use: Use) -> None:
    """Judge nc, socat and telnet: no shells on sockets, no secrets into them, no other machines unasked."""
    text = " ".join(word.text for word in use.call.argv[1:])
    runs_program = use.arguments.has(_RUNS) or any(part in text.upper() for part in ("EXEC:", "SYSTEM:", "SHELL:"))
    if runs_program or "shell" in use.stdin_taint:
        bench.report("reverse-shell", use.call.text)
    if use.taint & _LEAKS:
        bench.report("exfiltration", use.call.text)
    hosts = [word.text for word in use.arguments.operands if not word.text.isdigit()]
    if use.arguments.has(("-l", "--listen")) or not hosts or any(not is_local(bench, host) for host in hosts):
        bench.report("network-host", use.call.text)


def check_remote(bench: "Bench", use: Use) -> None:
    """Judge ssh, scp, rsync and mail: what is sent, what is deleted, what runs over there."""
    text, operands = use.call.text, use.operands
    if use.taint & _LEAKS:
        bench.report("exfiltration", text)
    if use.name == "ssh" and len(operands) > 1:
        command = " ".join(word.text for word in operands[1:])
        bench.run_text("shell", Word(command), use.scope, use.call)
    if use.name == "rsync":
        if any(":" in word.text.split("/")[0] for word in operands):
            bench.report("network-host", text)
        if operands and use.arguments.has(("--delete", "--delete-after", "--delete-before", "--delete-excluded", "--del")):
            bench.path("delete", operands[-1], use.scope, text)
        for word in operands[:-1]:
            if any(":" in other.text.split("/")[0] for other in operands[-1:]):
                bench.path("upload", word, use.scope, text)
