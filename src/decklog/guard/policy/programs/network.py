"""Judging of programs that talk to other machines: whom they talk to, and what they send."""

import re

from decklog.guard.policy.programs.hosts import host_of, is_local
from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.shell.options import sort_arguments
from decklog.guard.policy.shell.words import UNKNOWN, Word

_METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
_RUNS = ("-e", "-c", "--exec", "--sh-exec", "--lua-exec")
_SENT_FILE = re.compile(r"(?:[\w.\[\]-]*=)?[@<](.+)", re.DOTALL)
_DELETES = ("--delete", "--delete-after", "--delete-before", "--delete-during", "--delete-excluded", "--del")
_LEAKS = {"secret", "environment"}
# An address in which there is room for a name and a version, but not for a file.
_PLAIN = re.compile(r"(?:https?://)?[\w.-]+(?:/[\w.,:@%+~=?&/-]{0,160})?")
_PLAIN_HEADER = re.compile(r"(?i)(?:accept(?:-\w+)?|user-agent|content-type|if-[\w-]+):")
# With this, wget shows the page instead of keeping it.
_SHOWS = {"wget": {"-O", "--output-document"}, "curl": set[str]()}


def check_url(judge: Judge, use: Use) -> None:
    """Judge a URL by its host; `file:` URLs are files."""
    for word in use.arguments.operands:
        if word.text.lower().startswith("file:"):
            judge.path("read", Word(word.text[5:].replace("//", "/", 1)), use.scope, use.call.text)
            continue
        if _is_not_url(word.text, use.name) or _goes_to_socket(use):
            continue
        host = host_of(judge.policy, word.text)
        if host in judge.policy.names["metadata_hosts"]:
            judge.report("cloud-metadata", use.call.text)
        is_own_port = word.text.startswith(":") and use.name in ("http", "https", "xh")
        if not is_local(judge.policy, host) and not is_own_port and not _is_public_reading(judge, use, word, host):
            judge.report("network-host", use.call.text)


def _goes_to_socket(use: Use) -> bool:
    """Tell whether a client is told to talk to a socket of this machine, whatever host the address names."""
    return use.name in ("curl", "curlie") and any(word.text.startswith("--unix-socket") for word in use.call.argv)


def _is_public_reading(judge: Judge, use: Use, word: Word, host: str) -> bool:
    """Tell whether a page of a public place is only shown: nothing is sent along, and nothing is left behind as a file."""
    if host not in judge.policy.names["public_hosts"] or use.name not in ("curl", "wget") or not _PLAIN.fullmatch(word.text):
        return False
    arguments = sort_arguments(use.call.argv[1:], judge.policy.programs[use.name].options)
    shown = [given.text for option, given in arguments.values if judge.policy.programs[use.name].options.get(option) == "write"]
    is_shown = bool(shown) or use.name == "curl"
    leaves = any(redirect.is_output and redirect.target.text != "/dev/null" for redirect in use.call.redirects)
    return (
        is_shown
        and not leaves
        and set(shown) <= {"-", "/dev/null"}
        and set(arguments.flags) - _SHOWS[use.name] <= judge.policy.names["page_options"]
        and all(given.text in ("GET", "HEAD") for option, given in arguments.values if option in ("-X", "--request"))
        and all(_PLAIN_HEADER.match(given.text) for option, given in arguments.values if option in ("-H", "--header"))
    )


def _is_not_url(text: str, name: str) -> bool:
    """Tell whether an operand of an HTTP client is a method or a field."""
    return text in _METHODS or (name in ("http", "https", "xh", "httpie") and "=" in text and "://" not in text)


def check_data(judge: Judge, use: Use) -> None:
    """Judge data to be sent: `@name` and `field=@name` send a file."""
    for word in use.arguments.operands:
        found = _SENT_FILE.match(word.text)
        if found and found[1] != "-":
            judge.path("upload", Word(found[1].split(";")[0]), use.scope, use.call.text)


def check_socket(judge: Judge, use: Use) -> None:
    """Judge the socket of this machine that a client talks to: one of the repository is the user's own."""
    for word in use.arguments.operands:
        if judge.paths.classify(word.text, use.scope.cwd) not in ("inside", "scratch"):
            judge.report("daemon-socket", use.call.text)


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


def _check_mirror(judge: Judge, use: Use, operands: list[Word]) -> None:
    """Judge an rsync that deletes: a mirror in a scratch place may be made anew."""
    takes_away = use.arguments.has(("--remove-source-files",))
    if use.arguments.has(("-n", "--dry-run")):
        return
    if operands and use.arguments.has(_DELETES):
        judge.path("delete", operands[-1], use.scope, use.call.text)
        takes_away = takes_away or judge.paths.classify(operands[-1].text, use.scope.cwd) != "scratch"
    if takes_away:
        judge.report("rsync-delete", use.call.text)


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
        _check_mirror(judge, use, operands)
        for word in operands[:-1]:
            if any(":" in other.text.split("/")[0] for other in operands[-1:]):
                judge.path("upload", word, use.scope, text)
