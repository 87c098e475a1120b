"""Judging of programs that talk to other machines: whom they talk to, and what they send."""

import re

from decklog.tools.policy.programs.hosts import host_of, is_local
from decklog.tools.policy.programs.use import Judge, Use
from decklog.tools.policy.shell.words import UNKNOWN, Word

_METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
_RUNS = ("-e", "-c", "--exec", "--sh-exec", "--lua-exec")
_SENT_FILE = re.compile(r"(?:[\w.\[\]-]*=)?[@<](.+)", re.DOTALL)
_LEAKS = {"secret", "environment"}


def check_url(judge: Judge, use: Use) -> None:
    """Judge a URL by its host; `file:` URLs are files."""
    for word in use.arguments.operands:
        if word.text.lower().startswith("file:"):
            judge.path("read", Word(word.text[5:].replace("//", "/", 1)), use.scope, use.call.text)
            continue
        if _is_not_url(word.text, use.name):
            continue
        host = host_of(judge.policy, word.text)
        if host in judge.policy.names["metadata_hosts"]:
            judge.report("cloud-metadata", use.call.text)
        if not is_local(judge.policy, host) and not (word.text.startswith(":") and use.name in ("http", "https", "xh")):
            judge.report("network-host", use.call.text)


def _is_not_url(text: str, name: str) -> bool:
    """Tell whether an operand of an HTTP client is a method or a field."""
    return text in _METHODS or (name in ("http", "https", "xh", "httpie") and "=" in text and "://" not in text)


def check_data(judge: Judge, use: Use) -> None:
    """Judge data to be sent: `@name` and `field=@name` send a file."""
    for word in use.arguments.operands:
        found = _SENT_FILE.match(word.text)
        if found and found[1] != "-":
            judge.path("upload", Word(found[1].split(";")[0]), use.scope, use.call.text)


def check_network(judge: Judge, use: Use) -> None:
    """Judge a client: secrets must not go to another machine, by any way in."""
    hosts = [host_of(judge.policy, word.text) for word in use.operands if not _is_not_url(word.text, use.name)]
    if not hosts:
        judge.report("network-host", use.call.text)
    is_remote = any(not is_local(judge.policy, host) for host in hosts) or not hosts
    if is_remote and use.taint & _LEAKS and not _only_in_header(use):
        judge.report("exfiltration", use.call.text)
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


def check_lookup(judge: Judge, use: Use) -> None:
    """Judge a name lookup or a ping: a name built at run time can carry data out."""
    if any(not word.is_known or word.taint & _LEAKS for word in use.operands):
        judge.report("network-host", use.call.text)


def check_sockets(judge: Judge, use: Use) -> None:
    """Judge nc, socat and telnet: no shells on sockets, no secrets into them, no other machines unasked."""
    text = " ".join(word.text for word in use.call.argv[1:])
    runs_program = use.arguments.has(_RUNS) or any(part in text.upper() for part in ("EXEC:", "SYSTEM:", "SHELL:"))
    if runs_program or "shell" in use.stdin_taint:
        judge.report("reverse-shell", use.call.text)
    if use.taint & _LEAKS:
        judge.report("exfiltration", use.call.text)
    hosts = [word.text for word in use.arguments.operands if not word.text.isdigit()]
    if use.arguments.has(("-l", "--listen")) or not hosts or any(not is_local(judge.policy, host) for host in hosts):
        judge.report("network-host", use.call.text)


def check_remote(judge: Judge, use: Use) -> None:
    """Judge ssh, scp, rsync and mail: what is sent, what is deleted, what runs over there."""
    text, operands = use.call.text, use.operands
    if use.taint & _LEAKS:
        judge.report("exfiltration", text)
    if use.name == "ssh" and len(operands) > 1:
        command = " ".join(word.text for word in operands[1:])
        judge.run_text("shell", Word(command), use.scope, use.call)
    if use.name == "rsync":
        if any(":" in word.text.split("/")[0] for word in operands):
            judge.report("network-host", text)
        if operands and use.arguments.has(("--delete", "--delete-after", "--delete-before", "--delete-excluded", "--del")):
            judge.path("delete", operands[-1], use.scope, text)
        for word in operands[:-1]:
            if any(":" in other.text.split("/")[0] for other in operands[-1:]):
                judge.path("upload", word, use.scope, text)
