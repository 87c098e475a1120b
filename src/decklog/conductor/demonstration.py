"""Demonstrate the conductor without a model: scripted agents, a killed conductor, and the landing of the result."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from decklog.core.user_consents import give_consent
from decklog.log import Decklog

AGENT = """
import pathlib, re, sys, time
brief = sys.stdin.read()
name = re.search("item ([a-z]+)", brief)[1]
again = "Round 1" not in brief
time.sleep(1.0)
shop = pathlib.Path("shop.py")
text = shop.read_text()
if name == "price":
    # Wrong at first: the tests fail, and the next round fixes it.
    wrong, right = "return amount - rate - 1", "return amount * (100 + rate) // 100"
    text = text.replace(wrong, right) if wrong in text else text.replace("return amount", right if again else wrong)
elif name == "shipping":
    text += "\\n\\ndef shipping(weight):\\n    return 500 if weight > 10 else 200\\n"
    pathlib.Path("tests.py").open("a").write("assert shop.shipping(11) == 500\\n")
elif name == "total":
    text += "\\n\\ndef total(amount, weight):\\n    return price(amount) + shipping(weight)\\n"
else:
    pathlib.Path("README.md").write_text("# Shop\\n\\nPrices in cents.\\n")
shop.write_text(text)
"""
FILES = {
    "shop.py": "def price(amount, rate=0):\n    return amount\n",
    "tests.py": "import shop\n\nassert shop.price(100) == 100\n",
}
SETTINGS = """
[run]
agents = 2
sandbox = "none"

[agents.scripted]
command = {agent}

[[checks]]
name = "tests"
command = {check}

[tests]
paths = ["/nothing"]
"""
PLAN = """
goal = "Open the shop"

[[items]]
name = "price"
title = "Tax in prices"
objective = "This is item price."

[[items]]
name = "shipping"
title = "Shipping by weight"
objective = "This is item shipping."

[[items]]
name = "total"
title = "The total of an order"
objective = "This is item total."
needs = ["price", "shipping"]

[[items]]
name = "readme"
title = "Write a readme"
objective = "This is item readme."
"""
# Lines of the first conductor that are shown before it is killed.
_LINES_BEFORE_THE_KILL = 4


class Demonstration:
    """The demonstration in a folder. `program` is the command of Decklog, `say` prints a line, `target` names another log."""

    def __init__(self, folder: Path, program: list[str], say: Callable[[str], None], target: str | None = None) -> None:
        self.repository = folder / "shop"
        self.target = target or str(folder / "decklog.db")
        self._plan = folder / "plan.toml"
        self._program = program
        self._say = say
        self._environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "DECKLOG_DB": self.target}

    def play(self) -> str:
        """Run the demonstration; return the id of the run."""
        self._prepare()
        words = ["run", "--plan", str(self._plan)]
        self._say(f"$ decklog {' '.join(words)}        (in {self.repository})")
        self._run_and_kill(words)
        self._say("\nThe conductor was killed with kill -9 in the middle of it. The same command goes on:\n")
        run_id = self._run(words)
        self._say(f"\n$ decklog run land {run_id}")
        self._run(["run", "land", run_id])
        self._say("\n$ git log --oneline")
        for line in self._git("log", "--oneline").splitlines():
            self._say(line)
        return run_id

    def _prepare(self) -> None:
        self.repository.mkdir(parents=True)
        python = [sys.executable, "-I", "-S", "-B", "-c"]
        check = "import sys; sys.path.insert(0, '.'); exec(open('tests.py').read())"
        settings = SETTINGS.format(agent=json.dumps([*python, AGENT]), check=json.dumps([*python, check]))
        # We wrote the settings, so they need no other consent.
        give_consent(str(self.repository / ".git"), hashlib.sha256(settings.encode()).hexdigest())
        for name, text in {**FILES, "decklog.toml": settings}.items():
            (self.repository / name).write_text(text, encoding="utf-8")
        self._plan.write_text(PLAN, encoding="utf-8")
        Decklog.open(self.target, migrate=True).close()
        self._git("init", "-q", "-b", "main")
        self._git("add", "-A")
        self._git("-c", "user.name=you", "-c", "user.email=you@localhost", "commit", "-q", "-m", "A shop that sells nothing")

    def _git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.repository, capture_output=True, text=True, check=True)
        return done.stdout

    def _start(self, words: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._program, *words], cwd=self.repository, env=self._environment, stdout=subprocess.PIPE, text=True
        )

    def _run_and_kill(self, words: list[str]) -> None:
        with self._start(words) as conductor:
            assert conductor.stdout is not None
            for _ in range(_LINES_BEFORE_THE_KILL):
                self._say(conductor.stdout.readline().rstrip())
            conductor.send_signal(signal.SIGKILL)

    def _run(self, words: list[str]) -> str:
        """Run a command and show its output; return the last word, which is the run."""
        last = ""
        with self._start(words) as program:
            assert program.stdout is not None
            for line in program.stdout:
                last = line.rstrip() or last
                self._say(line.rstrip())
        if program.returncode:
            raise RuntimeError(f"decklog {' '.join(words)} ended with {program.returncode}")
        return last.split()[-1]
