"""Fast check for harmless commands: known programs that read, test or build, with plain words only.

Loading the policy costs several times as much as the rest of a hook. Every other command is left to the policy. Tests compare
each result of this module with the policy's decision.
"""

# Any other character may have a meaning for the shell.
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+, -")
# Parts of names that may belong to secrets or settings, or to something that only looks like a file.
_TELLING = (
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


def is_plain(command: str) -> bool:
    """Return whether a command is harmless without consulting the policy."""
    if len(command) > _LONGEST or not _PLAIN.issuperset(command):
        return False
    words = command.split()
    for length in (1, 2, 3):
        options = _ALLOWED.get(" ".join(words[:length]))
        if options is not None:
            return all(word in options if word[0] == "-" else _is_plain_word(word) for word in words[length:])
    return False


def only_reads(command: str) -> bool:
    """Return whether a command is plain and changes no file."""
    words = command.split()
    return is_plain(command) and any(" ".join(words[:length]) in _READERS for length in (1, 2))


def _is_plain_word(word: str) -> bool:
    """Return whether a word can only be a plain word, a number, or a file of the repository without secrets."""
    if word[0] in "/:+," or ":" in word or any(part[:1] == "." and part not in (".", "...") for part in word.split("/")):
        return False
    lower = word.lower()
    return not any(name in lower for name in _TELLING)
