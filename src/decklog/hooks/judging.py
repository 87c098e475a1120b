"""Policy decisions about tool calls before they run."""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from decklog.provenance.tool_calls import COMMANDS, DELETES, patched_files

if TYPE_CHECKING:
    from decklog.guard.policy import Publication
    from decklog.log import Decklog


# Words in a tool's name which mean that it changes its files; any other tool reads them.
_CHANGES = frozenset(
    (
        *("write", "edit", "replace", "create", "update", "delete", "remove", "move", "rename", "copy"),
        *("append", "insert", "patch", "save", "mkdir", "put", "upload", "set"),
    )
)
# Arguments that name a file or a folder.
_PATHS = (
    *("file_path", "filePath", "notebook_path", "absolute_path", "abs_path", "path", "paths", "file", "files", "filename"),
    *("dir_path", "directory", "folder", "source", "destination", "old_path", "new_path", "target_file", "relative_path"),
)
# Arguments with patterns of files below that folder. The `pattern` of a tool that finds files is one too.
_PATTERNS = ("glob", "include", "include_pattern", "file_pattern")
_FINDS_FILES = frozenset(["glob", "find"])
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def find_call_files(tool: str, arguments: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the files that a call reads and those that it writes."""
    words = {word.lower() for word in _WORDS.findall(tool)}
    paths = list(_find_texts(arguments, _PATHS))
    if words & _CHANGES:
        return [], paths
    names = (*_PATTERNS, "pattern") if words & _FINDS_FILES else _PATTERNS
    patterns = [pattern for pattern in _find_texts(arguments, names) if not pattern.startswith("!")]
    below = [os.path.join("" if pattern[0] == "~" else folder, pattern) for folder in paths or ["."] for pattern in patterns]
    if any("{" in path for path in below):
        # Search tools expand braces such as `{a,b}`, too.
        from decklog.guard.policy.words import expand_braces

        below = [path for pattern in below for path in expand_braces(pattern)]
    return [*paths, *below], []


def _find_texts(arguments: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        value = arguments.get(name)
        yield from (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str) and text)


# Any other character may have a meaning for the shell.
_HARMLESS_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+, -")
# Parts of names that may be secrets, settings, or something other than a plain file.
_SENSITIVE_NAME_PARTS = (
    *("secret", "cred", "passw", "pwd", "token", "key", "auth", "env", "pem", "rsa", "dsa", "ed25519", "pgp", "gpg", "ssh"),
    *("aws", "kube", "docker", "netrc", "npmrc", "pypirc", "htpasswd", "shadow", "cookie", "history", "login", "wallet"),
    *("vault", "private", "config", "decklog", "hook", "gcloud", "azure", "terraform", "tfstate", "tfvars", "session", "p12"),
    *("pfx", "jks", "crt"),
)
_LONGEST = 500

# Allowed options of each program. Entries such as `git status` include the subcommand.
_OPTIONS: dict[str, str] = {
    "ls": "-l -a -la -al -lh -lah -1 -R -t -lt -ltr -h",
    "pwd": "",
    "cat": "-n",
    "head": "-n -c -1 -3 -5 -10 -20 -30 -40 -50 -60 -80 -100 -200",
    "tail": "-n -c -1 -3 -5 -10 -20 -30 -40 -50 -60 -80 -100 -200",
    "wc": "-l -w -c",
    "grep": "-n -r -rn -i -in -l -rl -rin -c -w -v -E -A -B -C",
    "rg": "-n -i -l -c -w -A -B -C",
    "echo": "",
    "true": "",
    "basename": "",
    "dirname": "",
    "tree": "-L -d",
    "git status": "-s --short --porcelain -b --branch -sb",
    "git diff": "--stat --name-only --name-status --cached --staged",
    "git log": "--oneline --stat -1 -2 -3 -5 -10 -20 -n",
    "git show": "--stat --name-only",
    "git rev-parse": "--abbrev-ref --show-toplevel --short",
    "git ls-files": "",
    "git add": "-A",
    "pytest": "-q -x -v -vv -s",
    "python -m pytest": "-q -x -v -vv -s",
    "npm test": "",
    "cargo test": "",
    "cargo build": "",
    "cargo check": "",
    "go test": "-v",
    "go build": "",
    "go vet": "",
    "ruff check": "",
    "mypy": "",
}
# Programs that change no file.
_READERS = frozenset(
    (
        *("ls", "pwd", "cat", "head", "tail", "wc", "grep", "rg", "echo", "true", "basename", "dirname", "tree"),
        *("git status", "git diff", "git log", "git show", "git rev-parse", "git ls-files"),
    )
)
_ALLOWED = {name: frozenset(options.split()) for name, options in _OPTIONS.items()}


def is_harmless_command(command: str) -> bool:
    """Return whether a command is harmless without consulting the policy."""
    if len(command) > _LONGEST or not _HARMLESS_CHARACTERS.issuperset(command):
        return False
    words = command.split()
    for length in (1, 2, 3):
        options = _ALLOWED.get(" ".join(words[:length]))
        if options is not None:
            return all(word in options if word[0] == "-" else _is_harmless_word(word) for word in words[length:])
    return False


def is_read_only_command(command: str) -> bool:
    """Return whether a command is plain and changes no file."""
    words = command.split()
    return is_harmless_command(command) and any(" ".join(words[:length]) in _READERS for length in (1, 2))


def _is_harmless_word(word: str) -> bool:
    """Return whether a word can only be a plain word, a number, or a file of the repository without secrets."""
    if word[0] in "/:+," or ":" in word or any(part[:1] == "." and part not in (".", "...") for part in word.split("/")):
        return False
    lower = word.lower()
    return not any(name in lower for name in _SENSITIVE_NAME_PARTS)


def block_reason(payload: dict[str, Any], root: str) -> str | None:
    """Return why a call is blocked; None if the program's own rules decide."""
    return next((reason for decision, reason, _ in judge_call(payload, root) if decision == "deny"), None)


def judge_call(payload: dict[str, Any], root: str) -> list[tuple[str, str, dict[str, str]]]:
    """Return the policy's decisions about the commands and files of a call; deny a call that can't be read."""
    if not isinstance(payload.get("tool_name"), str) or not isinstance(payload.get("tool_input"), dict):
        return [("deny", "Decklog can't read this call, so it is blocked.", {})]
    cwd = str(payload.get("cwd") or root)
    return [decide(command, root, cwd) for command in _equivalent_commands(payload)]


def decide(command: str | list[str], root: str, cwd: str) -> tuple[str, str, dict[str, str]]:
    """Return the policy's decision about a command in a folder (`allow`, `ask` or `deny`) and the reason.

    The third value has the rule and its reason for the record, if a rule decided.
    """
    place = os.path.relpath(cwd, root)
    # In a folder without a hidden part, plain names are ordinary files.
    is_hidden = place != "." and any(part.startswith(".") for part in place.split(os.sep))
    if isinstance(command, str) and not is_hidden and is_harmless_command(command):
        return "allow", "", {}
    try:
        return _judge_by_policy(command, root, place)
    except Exception as problem:  # noqa: BLE001
        hint = getattr(problem, "hint", None) or "Run `decklog doctor agents`."
        return "deny", f"Decklog could not judge this, so it is blocked: {problem} {hint}", {"rule": "not-judged", "reason": hint}


def _judge_by_policy(command: str | list[str], root: str, place: str) -> tuple[str, str, dict[str, str]]:
    """Judge a command by the policy and, if it publishes commits, by the review gate."""
    from decklog.guard.policy import Decision, examine

    verdict, published = examine(command, root=root, cwd=place)
    explanation, cause = f"({verdict.rule}): {verdict.reason}", {"rule": verdict.rule, "reason": verdict.reason}
    if verdict.decision is Decision.DENY:
        return "deny", f"Decklog's policy denies this {explanation} Find another way, or ask the person.", cause
    if published and (reason := find_gate_refusal(published, root)):
        return "deny", reason, {}
    return verdict.decision.value, explanation, cause


def find_gate_refusal(published: "Sequence[Publication]", root: str, log: "Decklog | None" = None) -> str | None:
    """Return why commits must not be published; None if the repository's review gate accepts them.

    The default log is that of the root folder.
    """
    from pathlib import Path

    from decklog.core.errors import DecklogError
    from decklog.core.folders import state_home
    from decklog.location.locate import locate_session_log
    from decklog.review.publishing import push_block_reason

    location = locate_session_log(root, os.environ) if log is None else None
    if location is None:
        return push_block_reason(log, published, root=root, state=Path(state_home()))
    try:
        with location.open() as opened:
            return push_block_reason(opened, published, root=root, state=Path(state_home()))
    except DecklogError:
        # Without the log, no review is known.
        return push_block_reason(None, published, root=root, state=Path(state_home()))


def write_command(path: str) -> list[str]:
    """Return the command that is judged in place of writing a file."""
    return ["tee", path]


def read_command(path: str) -> list[str]:
    """Return the command that is judged in place of reading a file."""
    return ["cat", path]


def _equivalent_commands(payload: dict[str, Any]) -> Iterator[str | list[str]]:
    """Yield the commands to judge for a call: its own command, or equivalents for the files it names."""
    tool, arguments = payload["tool_name"], payload["tool_input"]
    command = next((given for name in COMMANDS if (given := arguments.get(name))), None)
    if tool == "apply_patch":
        yield from (["rm", path] if head == DELETES else write_command(path) for head, path in patched_files(arguments))
        return
    if isinstance(command, str) or (isinstance(command, list) and all(isinstance(word, str) for word in command)):
        yield command
        return
    read, written = find_call_files(tool, arguments)
    yield from map(read_command, read)
    yield from map(write_command, written)


# Hook for an agent without a user: the policy allows or denies each call. The conductor starts it inside the agent's sandbox,
# so it uses no log. It uses the format of Claude Code's `PreToolUse`.

_NO_PERSON_HINT = "Nobody can be asked here. Find another way, or skip it and report that in your last answer."


def answer(payload: dict[str, Any], root: str, permissions: str) -> dict[str, Any] | None:
    """Return the hook's answer to a call; None for an unknown tool, which the program's own rules decide about."""
    decisions_of_call = judge_call(payload, root)
    for worst in ("deny", "ask"):
        if reasons := [reason for decision, reason, _ in decisions_of_call if decision == worst]:
            if worst == "ask" and permissions == "allow":
                break
            refused = (
                f"Decklog's policy requires a person's approval {reasons[0]} {_NO_PERSON_HINT}" if worst == "ask" else reasons[0]
            )
            return _decision("deny", refused)
    return _decision("allow", "Decklog's policy allows this.") if decisions_of_call else None


def _decision(decision: str, reason: str) -> dict[str, Any]:
    output = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": output}


def main() -> None:
    """Answer the call on standard input; block a call that can't be judged."""
    try:
        payload = json.loads(sys.stdin.buffer.read())
        output = answer(payload, os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd(), sys.argv[2])
    except Exception as problem:  # noqa: BLE001
        # Any other exit code than 2 would let the call run.
        sys.stderr.write(f"Decklog could not judge this call, so it is blocked: {problem}\n")
        sys.exit(2)
    if output is not None:
        sys.stdout.write(json.dumps(output))
