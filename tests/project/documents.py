"""Reads the code blocks of our documents, and runs them as a reader would."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.db.processes import ROOT, environment
from tests.programs import write_decklog_stub

# Blocks that are not run, by their first line, and why.
NOT_RUN = {
    "## Write tests": "a part of a plan; tests/plugins/importers/markdown has such plans",
    "[models.small]": "settings that name a model of the reader's own",
    "make demo     # sets up a virtual environment, then shows the main job": "the second command runs this very test",
    "decklog setup codex --trust": "it needs Codex itself; tests/agents/real/test_setup.py runs it",
    "decklog setup claude --plugin ~/decklog-plugin": "it needs both programs; tests/agents/real/test_setup.py runs it",
    "event        session     session startup": "an excerpt; tests/agents/real/test_editors.py has such sessions",
    "decklog mcp --http 8420 --token-file ~/.config/decklog-token": "it never ends by itself; tests/mcp/test_http.py runs it",
    "[agents.claude]": "it needs Claude Code itself; tests/agents/real/test_conductor.py runs it",
    "[agents.careful]": "it needs agents' own programs; tests/agents/real/test_conductor.py runs them",
    "[[agents.mine.events]]": "a part of a file; tests/conductor/test_sessions.py reads such settings",
    "[run]": "a part of a file; tests/conductor/test_machines.py works with such settings",
    "first$  decklog run --plan plan.toml": "it needs several machines; tests/conductor/test_machines.py has them",
    "scrape_configs:": "settings of Prometheus; tests/web/test_health.py shows such a token",
    "decklog serve": "it serves until it is ended; tests/web/test_serving.py runs it",
    "decklog serve --host 192.0.2.7 --tls-cert cert.pem --tls-key key.pem --password-file ~/.decklog-web": (
        "it serves until it is ended, at an address of its own; tests/web/test_elsewhere.py runs it"
    ),
    "decklog export otlp flaky --to http://localhost:4318": (
        "it needs a collector; tests/plugins/adapters/otel/test_commands.py has one"
    ),
    "decklog receive otlp --token-file ~/.decklog-otlp": (
        "it never ends by itself; tests/plugins/adapters/otel/test_commands.py runs it"
    ),
    "export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318": (
        "settings; tests/plugins/adapters/otel/test_receiver.py sends with such"
    ),
    '[project.entry-points."decklog.plugins"]': "a part of a file; tests/plugins/test_plugins.py installs such a package",
    "[[redaction.rule]]": "a part of a file; tests/redaction/test_config.py reads such settings",
    "[redaction]": "a part of a file; tests/redaction/test_config.py reads such settings",
    "[provenance]": "a part of a file; tests/hooks/test_capturing.py reads such settings",
    "[[rule]]": "a part of rules.toml; tests/redaction/test_rules.py tries every rule's examples",
    '$ echo "export T=acme_a1b2c3d4e5a1b2c3d4e5" | decklog redact --explain': (
        "it needs the rule of the block before; tests/redaction/test_text.py explains what was found"
    ),
    "1:13 password (10 characters) by name DB_PASSWORD, score +10.31: wordiness=-4.55 (+0.69), digits=0.2 (+0.45), …": (
        "an answer; its figures follow the weights"
    ),
    "[models.strong]": "it needs an agent's own program; tests/agents/real/test_reviewers.py runs it",
    "[agents.worker]": "it needs an agent's own program; tests/fixes/test_loop.py works with such settings",
    "name: attribute": "it needs a forge; tests/agents/origins/test_merged.py does what it does",
    "name: review": "tests/review/test_review_command.py runs what it runs",
    "hash = hex(sha256(previous_hash + canonical))": "a formula; tests/journal/test_links.py holds it",
}
# Pages that are written from the code, and held against it by tests/test_docs.py.
GENERATED = {"docs/cli.md", "docs/reference/errors.md", "docs/reference/python.md"}
# Pages whose console blocks need agents' own programs; tests/agents/real/test_guide.py runs them.
WITH_AGENTS = {"docs/how-to/run-agents.md"}
# Commands that ask at a terminal; the answer is yes.
AT_A_TERMINAL = ("decklog accept --settings",)
_SPAWN = """
import os, pty, sys

def read(terminal):
    shown = os.read(terminal, 65536)
    if shown.endswith(b"[y/N]: "):
        os.write(terminal, b"y\\n")
    return shown

pty.spawn(sys.argv[1:], read)
"""
# Lines of a console block that would leave the machine.
LEAVES_THE_MACHINE = ("pip install ",)

PYTHON, CONSOLE, TOML = "python", "console", "toml"
# A block that begins with the name of a file is that file for the console blocks after it.
_FILE = re.compile(r"# ([\w-]+\.(?:py|toml))$")
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:\A|\n\n)((?: {4}\S[^\n]*(?:\n|\Z)|\n(?= {4}))+)")
_TIME, _DIGEST, _ID = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?", r"\b[0-9a-f]{64}\b", r"\b[a-z]+_01\w+"
# Placeholders of a page, each for any text of its kind.
_PLACEHOLDER = re.compile(f"(?P<time>{_TIME})|(?P<digest>{_DIGEST})|(?P<id>{_ID})|(?P<rest>…)")
_STANDS_FOR = {"time": _TIME, "digest": _DIGEST, "id": _ID, "rest": ".*"}


@dataclass(frozen=True)
class Block:
    """A block of code: its place, language and text."""

    page: str
    line: int
    language: str
    text: str

    @property
    def first_line(self) -> str:
        return self.text.strip().splitlines()[0].strip()

    @property
    def file_name(self) -> str | None:
        """The file that a reader saves it as; None if it is run."""
        found = _FILE.match(self.first_line) if self.language in (PYTHON, TOML) else None
        return found and found[1]

    @property
    def is_run(self) -> bool:
        return self.language in (PYTHON, CONSOLE) or self.file_name is not None

    @property
    def is_program(self) -> bool:
        """Whether it is a program whose output is next to its prints."""
        return self.language == PYTHON and self.file_name is None

    @property
    def begins_a_story(self) -> bool:
        """Whoever makes a log begins anew; other blocks go on in the folder of the one before."""
        return re.search(r"^\$ .*\bdecklog\b.* init\b", self.text, re.MULTILINE) is not None


@dataclass(frozen=True)
class Step:
    """A command of a console block, and what the page shows of its answer."""

    command: str
    shown: tuple[str, ...]


def pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    """Return every block of a page, fenced or indented, in order."""
    name, text = str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
    fenced = [(found.start(), found[1], found[2]) for found in _FENCE.finditer(text)]
    # Blanked, not cut: an indented line inside a fence is no block, and places must stay.
    rest = _FENCE.sub(lambda found: re.sub(r"[^\n]", "x", found[0]), text)
    indented = [(found.start(1), "", found[1]) for found in _INDENTED.finditer(rest)]
    return [Block(name, text.count("\n", 0, place) + 1, language, body) for place, language, body in sorted(fenced + indented)]


def steps_of(block: Block) -> list[Step]:
    """Return the commands of a console block, each with the lines shown under it."""
    _, *parts = re.split(r"^\$ ", block.text.replace("\\\n", ""), flags=re.MULTILINE)
    cut = [part.rstrip("\n").split("\n") for part in parts]
    return [Step(command, tuple(shown)) for command, *shown in cut]


def variables(home: Path) -> dict[str, str]:
    """Return a reader's environment: `decklog` on the path, a home folder, and a terminal of 100 columns."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return environment(HOME=str(home), XDG_DATA_HOME=str(home / "data"), PATH=path, COLUMNS="100")


def answers(
    steps: list[Step], folder: Path, home: Path, *, is_forked: bool = False, further: Mapping[str, str] | None = None
) -> list[tuple[int, str]]:
    """Run commands one after the other in one shell; give the exit code and the words of each. `further` are more variables.

    Forked, `decklog` is a process of its own that needs not import everything; otherwise it is the installed program.
    """
    mark = "\x1e"
    run = [step for step in steps if not step.command.startswith(LEAVES_THE_MACHINE)]
    script = "\n".join(f"{_typed(step.command)}\nprintf '{mark}%d{mark}' $?" for step in run)
    surroundings = {**variables(home), **(further or {})}
    inherited = [write_decklog_stub(home)] if is_forked else []
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1\n{script}"],
        cwd=folder,
        env={**surroundings, "PATH": f"{home}:{surroundings['PATH']}"} if is_forked else surroundings,
        pass_fds=inherited,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    parts = done.stdout.split(mark)
    results = iter(zip(map(int, parts[1::2]), parts[0::2], strict=False))
    return [(0, "") if step.command.startswith(LEAVES_THE_MACHINE) else next(results) for step in steps]


def _typed(command: str) -> str:
    """Give a command a terminal if it needs one, and type the answer."""
    if command not in AT_A_TERMINAL:
        return command
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(_SPAWN)} {command} < /dev/null | tr -d '\\r'"


def shows(shown: tuple[str, ...], output: str) -> bool:
    """Tell whether an answer is what a page shows: times, ids and `…` stand for any, and widths don't matter."""
    pattern = r"\n".join(".*(?:\n.*)*" if line.strip() == "…" else _pattern(line) for line in shown)
    return re.fullmatch(pattern, "\n".join(map(_plain, output.rstrip().splitlines()))) is not None


def _plain(line: str) -> str:
    return re.sub("─+", "─", re.sub(r"\s+", " ", line)).strip()


def _pattern(line: str) -> str:
    plain, pattern, end = _plain(line), "", 0
    for found in _PLACEHOLDER.finditer(plain):
        pattern += re.escape(plain[end : found.start()]) + _STANDS_FOR[str(found.lastgroup)]
        end = found.end()
    return pattern + re.escape(plain[end:])


def promised(block: Block) -> list[str]:
    """Return the remarks next to the prints of a Python block: each begins with the output."""
    return [found[1] for found in re.finditer(r"^\s*print\(.*\)\s+# (.+)$", block.text, re.MULTILINE)]
