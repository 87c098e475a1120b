"""Judging of git: settings given on the way, where a push goes, aliases and programs it is told to start."""

import re
from fnmatch import fnmatchcase

from decklog.guard.policy.programs.hosts import host_of
from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.shell.words import UNKNOWN, Word

_FORCE = ("-f", "--force", "--force-with-lease", "--force-if-includes", "--delete", "-d", "--prune")
_EVERYTHING = ("--mirror", "--all", "--branches")
_READS_SETTING = (
    "--get",
    "--get-all",
    "--get-regexp",
    "-l",
    "--list",
    "--get-urlmatch",
    "--name-only",
    "--show-origin",
)
_HARMLESS_VALUES = ("cat", "true", "false", "", "less", ":")
_ADDRESS = re.compile(r"[a-z+]+://|[\w.-]+@[\w.-]+:|/|~|\.\.")
_PUSH_VALUES = ("--repo", "--receive-pack", "--exec", "-o", "--push-option")


def check_git(judge: Judge, use: Use) -> None:
    """Judge one use of git."""
    _check_overrides(judge, use)
    operands = use.operands
    match use.sub:
        case "push":
            _check_push(judge, use)
        case "config":
            _check_config(judge, use, operands)
        case "clone" | "fetch" | "pull" | "ls-remote" | "submodule" | "remote":
            _check_remotes(judge, use, operands)
        case "checkout" | "switch":
            _note_branch(use, operands)
        case "add" | "stage":
            _check_paths(judge, use, operands, ("secret", "env", "guard", "vault"))
        case "bundle" if operands and operands[0].text == "create":
            judge.path("write", Word(operands[1].text if operands[1:] else ""), use.scope, use.call.text)
        case "mailinfo":
            for word in operands[:2]:
                judge.path("write", word, use.scope, use.call.text)
        case "show" | "cat-file" | "diff" | "archive" | "blame" | "annotate" | "grep" | "log" | "hash-object" | "apply" | "am":
            _check_reads(judge, use, operands)
        case "rebase" | "difftool":
            _check_exec(judge, use)
        case "bisect" if operands and operands[0].text == "run":
            judge.review(use.call.inner(_behind(use, "run")), use.scope)
        case "rm" | "mv":
            for word in operands:
                judge.path("delete", word, use.scope, use.call.text) if word.text not in (".", "*") else None
    _check_foreach(judge, use)


def _behind(use: Use, text: str) -> list[Word]:
    """Give the words behind a word of the command, flags included."""
    texts = [word.text for word in use.call.argv]
    return use.call.argv[texts.index(text) + 1 :] if text in texts else []


def _check_exec(judge: Judge, use: Use) -> None:
    """Judge the command that a rebase runs after each commit, or a difftool on each file."""
    for place, word in enumerate(use.call.argv):
        if word.text in ("-x", "--exec"):
            judge.run_text(
                "shell", use.call.argv[place + 1] if use.call.argv[place + 1 :] else Word(UNKNOWN), use.scope, use.call
            )
        elif word.text.startswith(("-x", "--exec=")):
            judge.run_text("shell", Word(word.text.removeprefix("--exec=").removeprefix("-x")), use.scope, use.call)


def _check_foreach(judge: Judge, use: Use) -> None:
    """Judge the command that `submodule foreach` runs."""
    rest = [word for word in _behind(use, "foreach") if not word.text.startswith("--")]
    if use.sub.startswith("submodule") and rest:
        judge.run_text("shell", Word(" ".join(word.text for word in rest)), use.scope, use.call)


def _check_overrides(judge: Judge, use: Use) -> None:
    """Judge `-c key=value`, `--config-env` and `--exec-path` before the subcommand."""
    words = use.call.argv
    for place, word in enumerate(words[:-1]):
        if word.text == use.sub and place:
            break
        if word.text == "-c":
            key, _, value = words[place + 1].text.partition("=")
            _check_setting(judge, use, key, value)
        elif word.text.startswith(("--exec-path=", "--config-env")):
            judge.report("git-config-dangerous", use.call.text)


def _check_setting(judge: Judge, use: Use, key: str, value: str) -> None:
    """Judge one setting: an alias by what it runs, a dangerous one by its key."""
    if key.lower().startswith("alias."):
        command = value[1:] if value.startswith("!") else f"git {value}"
        judge.run_text("shell", Word(command), use.scope, use.call)
    elif not key or (value in _HARMLESS_VALUES and not key.lower().endswith("sslverify")):
        return
    elif UNKNOWN in key or judge.policy.patterns["dangerous_git_config"].match(key):
        judge.report("git-config-dangerous", use.call.text)


def _check_config(judge: Judge, use: Use, operands: list[Word]) -> None:
    """Judge `git config`: reading is fine unless it reads credentials, writing depends on the key."""
    texts = [word.text for word in operands]
    if texts and texts[0] in ("get", "set", "unset", "list"):
        texts = texts[1:] if texts[0] != "get" else texts[1:2]
    if not texts:
        return
    if len(texts) == 1 or use.arguments.has(_READS_SETTING):
        if "credential" in texts[0].lower() or "extraheader" in texts[0].lower():
            judge.report("git-config-dangerous", use.call.text)
        return
    _check_setting(judge, use, texts[0], texts[1])


def _check_remotes(judge: Judge, use: Use, operands: list[Word]) -> None:
    """Judge the places that git fetches from."""
    for word in operands:
        if word.text.startswith(("ext::", "fd::")) or word.text.startswith("-u"):
            judge.report("git-remote-program", use.call.text)
        elif use.sub == "clone" and word is operands[0] and (":" in word.text or UNKNOWN in word.text):
            host = host_of(judge.policy, word.text.split(":")[0] + "/" if "://" not in word.text else word.text)
            if host not in judge.policy.names["forges"]:
                judge.report("network-host", use.call.text)
        elif use.sub in ("fetch", "pull", "ls-remote") and _ADDRESS.match(word.text):
            judge.report("network-host", use.call.text)
    for option, word in use.arguments.values:
        if use.sub == "clone" and option in ("-c", "--config"):
            key, _, value = word.text.partition("=")
            _check_setting(judge, use, key, value)
    if use.sub == "clone" and len(operands) > 1:
        judge.path("write", operands[1], use.scope, use.call.text)


def _note_branch(use: Use, operands: list[Word]) -> None:
    """Remember the branch that the script is on from here."""
    new = use.arguments.value("-b", "-c", "--create", "--orphan")
    if new is not None:
        use.scope.branch = new.text
    elif operands and "--" not in use.arguments.flags:
        use.scope.branch = operands[0].text


def _check_paths(judge: Judge, use: Use, operands: list[Word], classes: tuple[str, ...]) -> None:
    """Judge files put under version control."""
    if any(judge.paths.classify(word.text, use.scope.cwd) in classes for word in operands):
        judge.report("git-add-secret", use.call.text)


def _check_reads(judge: Judge, use: Use, operands: list[Word]) -> None:
    """Judge files shown from a revision, written `revision:path`, or named outright."""
    for word in [*operands, *(word for option, word in use.arguments.values if option == "-L")]:
        path = word.text.rpartition(":")[2]
        if path and judge.paths.classify(path, use.scope.cwd) in ("secret", "env", "guard", "vault", "device", "sensitive"):
            judge.path("read", Word(path), use.scope, use.call.text)


def _check_push(judge: Judge, use: Use) -> None:
    """Judge a push by every branch it may change."""
    arguments, text = use.arguments, use.call.text
    places = [word for word in use.operands if word.text]
    refs = places[1:]
    if arguments.value("--repo") is not None:
        refs = places
    if arguments.has(_EVERYTHING):
        judge.report("git-push-protected", text)
    if arguments.has(_FORCE) and not arguments.has(("--dry-run", "-n")):
        judge.report("git-push-force", text)
    if any(word.text.startswith("ext::") for word in places[:1]):
        judge.report("git-remote-program", text)
    elif any(_ADDRESS.match(word.text) for word in places[:1]):
        judge.report("git-push-address", text)
    if not refs and not (arguments.has(("--tags",)) and places):
        _check_branch(judge, use, use.scope.branch or UNKNOWN)
    position = 0
    while position < len(refs):
        ref = refs[position].text
        if ref == "tag":
            position += 1
        else:
            _check_refspec(judge, use, ref)
        position += 1


def _check_refspec(judge: Judge, use: Use, ref: str) -> None:
    """Judge one refspec by its destination; `+` forces and an empty source deletes."""
    if ref.startswith("+"):
        judge.report("git-push-force", use.call.text)
    source, colon, target = ref.lstrip("+").partition(":")
    target = target if colon else source
    if colon and not source and target:
        judge.report("git-push-force", use.call.text)
    if target.startswith("refs/tags/"):
        return
    if target.upper() in ("HEAD", "@"):
        target = use.scope.branch or UNKNOWN
    _check_branch(judge, use, target)


def _check_branch(judge: Judge, use: Use, branch: str) -> None:
    """Judge pushing to a branch: protected ones are refused, unknown ones asked about."""
    name = branch.removeprefix("refs/").removeprefix("heads/").removeprefix("for/")
    if any(fnmatchcase(protected, name.lower()) for protected in judge.policy.names["protected_branches"]):
        judge.report("git-push-protected", use.call.text)
    elif not name or UNKNOWN in name or "*" in name:
        judge.report("git-push-unknown", use.call.text)
