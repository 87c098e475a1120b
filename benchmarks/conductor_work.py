"""The whole loop on workloads of our own: 40 seeded faults, 40 impossible tasks, and 50 pairs of changes that break together.

`python -m benchmarks.conductor_work` works each as one run with 4 scripted agents through a package that it writes, then checks
every commit of the target again. `--size 0.1` takes a tenth of each.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.consenting import consent, start_plan
from decklog import Decklog
from decklog.conductor.conductor import Conductor

FAULTS, PAIRS, AGENTS = 40, 50, 4
# Follows a script in its item: files to write and texts to replace, another one in a later round.
AGENT = """
import json, pathlib, re, sys
text = sys.stdin.read()
rounds = dict(re.findall(r"^SCRIPT-(\\d) (.*)$", text, re.M))
number = re.search(r"^Round (\\d+)", text, re.M)[1]
for path, old, new in json.loads(rounds.get(number, rounds["1"])):
    file = pathlib.Path(path)
    file.parent.mkdir(exist_ok=True)
    file.write_text(file.read_text().replace(old, new) if old is not None else new)
"""
CHECK = """
import os, runpy, sys
sys.path.insert(0, os.getcwd())
for name in sorted(os.listdir("tests")):
    found = runpy.run_path("tests/" + name)
    [found[test]() for test in found if test.startswith("test_")]
"""
SETTINGS = """
[run]
agents = {agents}
sandbox = "none"
rounds = 4
attempts = 2
[agents.scripted]
command = {agent}
[[checks]]
name = "tests"
command = {check}
"""
Edit = tuple[str, str | None, str]
# A fault of one line in each kind of function; the second is what was meant.
SEEDS = (
    ("return sum(values[1:])", "return sum(values)", "([1, 2, 3]) == 6"),
    ("return max(values) + 1", "return max(values)", "([1, 2, 3]) == 3"),
    ("return len(values) - 1", "return len(values)", "([1, 2, 3]) == 3"),
    ("return values[0]", "return values[-1]", "([1, 2, 3]) == 3"),
    ("return sorted(values)", "return sorted(values, reverse=True)", "([1, 2]) == [2, 1]"),
    ("return values * 3", "return values * 2", "([1]) == [1, 1]"),
    ("return 0 in values", "return 1 in values", "([1])"),
    ("return values[1:]", "return values[:-1]", "([1, 2]) == [1]"),
)
PAIR = '"""Two changes."""\n\nLIMIT = 10\n\n\ndef cost(amount):\n    return amount + LIMIT\n\n\nKNOWN = {"plain": cost}\n'
# Two changes that merge cleanly: what the first does, and what the second does that relies on how it was; then with the first.
KINDS = ("rename", "signature", "constant", "default", "registry")


def package(count: int) -> dict[str, str]:
    """Write a package of `count` small modules, each with a fault, and a test that does not see it."""
    files = {}
    for number in range(count):
        fault = SEEDS[number % len(SEEDS)][0]
        files[f"shop/f{number:02}.py"] = (
            f'"""Part {number}."""\n\n\ndef work(values):\n    """Do it."""\n    {fault}\n\n\nNAME = "f{number:02}"\n'
        )
    for number in range(PAIRS):
        files[f"shop/p{number:02}.py"] = PAIR
    files["tests/test_all.py"] = "from shop import f00, p00\n\n\ndef test_names():\n    assert f00.NAME == 'f00' and p00.LIMIT\n"
    return files | {"shop/__init__.py": ""}


def mending(number: int) -> tuple[list[Edit], list[Edit]]:
    """Mend a fault, with a test that is red without; the first try mends nothing."""
    fault, meant, claim = SEEDS[number % len(SEEDS)]
    path, test = f"shop/f{number:02}.py", f"tests/test_f{number:02}.py"
    new_test = f"from shop import f{number:02}\n\n\ndef test_work():\n    assert f{number:02}.work{claim}\n"
    return [(test, None, new_test)], [(test, None, new_test), (path, fault, meant)]


def impossible(number: int) -> list[Edit]:
    """Ask for what contradicts itself: two tests that can't both be green."""
    name = f"f{number:02}"
    tests = "".join(f"def test_{value}():\n    assert {name}.work([5]) == {value}\n\n\n" for value in ("'a'", "'b'"))
    return [
        (
            f"tests/test_{name}_no.py",
            None,
            f"from shop import {name}\n\n\n" + tests.replace("test_'", "test_").replace("'():", "():"),
        )
    ]


def pair(number: int) -> tuple[list[Edit], list[Edit], list[Edit]]:
    """Give a change, another that breaks with it though both merge, and what the other is once the first has landed."""
    name = f"p{number:02}"
    path, caller, test = f"shop/{name}.py", f"shop/use_{name}.py", f"tests/test_{name}.py"
    first: dict[str, tuple[list[Edit], str, str, str]] = {
        "rename": ([(path, "def cost(", "def price("), (path, '"plain": cost', '"plain": price')], "cost(1)", "price(1)", "11"),
        "signature": ([(path, "def cost(amount)", "def cost(*, amount)")], "cost(1)", "cost(amount=1)", "11"),
        "constant": ([(path, "LIMIT", "BOUND")], "LIMIT", "BOUND", "10"),
        "default": ([(path, "return amount + LIMIT", "return LIMIT + 1 + amount")], "cost(1) - 0", "cost(1) - 1", "11"),
        "registry": ([(path, '"plain": cost', '"simple": cost')], 'KNOWN["plain"](1)', 'KNOWN["simple"](1)', "11"),
    }
    change, before, after, value = first[KINDS[number % len(KINDS)]]

    def use(words: str) -> list[Edit]:
        # The same use again, once it is known how it is called now.
        return [
            (caller, None, f"from shop import {name}\n\n\ndef used():\n    return {name}.{words}\n"),
            (test, None, f"from shop import use_{name}\n\n\ndef test_used():\n    assert use_{name}.used() == {value}\n"),
        ]

    return change, use(before), use(after)


def work_item(name: str, *rounds: list[Edit], last: int = 4) -> dict[str, Any]:
    scripts = [f"SCRIPT-{number} {json.dumps(rounds[min(number, len(rounds)) - 1])}" for number in range(1, last + 1)]
    return {"name": name, "objective": "\n".join(scripts)}


class Ground:
    """A repository with the package, and a run of one plan through it."""

    def __init__(self, folder: Path) -> None:
        self.repository, self.state = folder / "repository", folder / "state"
        self.target = str(folder / "decklog.db")
        self.repository.mkdir(parents=True)
        python = [sys.executable, "-I", "-S", "-B", "-c"]
        settings = SETTINGS.format(agents=AGENTS, agent=json.dumps([*python, AGENT]), check=json.dumps([*python, CHECK]))
        for name, text in {**package(FAULTS), "decklog.toml": settings}.items():
            path = self.repository / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "First"]):
            self.git("-c", "user.name=work", "-c", "user.email=work@localhost", *words)
        consent(self.repository)

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.repository, capture_output=True, text=True, check=True).stdout.strip()

    def work(self, items: list[dict[str, Any]]) -> Counter[str]:
        """Work a plan to its end; count what has come of it."""
        plan = json.dumps({"goal": "Work it", "items": items}).encode()
        with Decklog.open(self.target) as log:
            context = start_plan(log, plan, self.repository, self.state)
            Conductor(context).run()
            tasks = list(log.tasks.find(context.run_id, role="land", limit=200))
            found = Counter({"landed": sum(task.state == "done" for task in tasks)})
            found["not landed"] = len(tasks) - found["landed"]
            found["sent back"] = len(log.tasks.find(context.run_id, role="work", limit=1000)) - len(tasks)
            commits = self.git("rev-list", context.target).split()
            found["red commits"] = sum(self._is_red(commit) for commit in commits)
            found["logs not whole"] = int(not log.journal.verify(context.run_id).ok)
        return found

    def _is_red(self, commit: str) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(["git", "archive", commit], cwd=self.repository, capture_output=True, check=True).stdout
            subprocess.run(["tar", "-x"], input=archive, cwd=folder, check=True)
            done = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", CHECK], cwd=folder, capture_output=True, check=False)
            return done.returncode != 0


def workloads(share: float) -> dict[str, list[dict[str, Any]]]:
    faults, pairs = round(FAULTS * share), round(PAIRS * share)
    both: list[dict[str, Any]] = []
    for number in range(pairs):
        first, second, later = pair(number)
        both += [work_item(f"a{number:02}", first, [*first, *later]), work_item(f"b{number:02}", second, later)]
    return {
        f"{faults} seeded faults, each mended in the second round": [work_item(f"m{n:02}", *mending(n)) for n in range(faults)],
        f"{faults} tasks that contradict themselves": [work_item(f"i{n:02}", impossible(n)) for n in range(faults)],
        f"{pairs} pairs of changes that merge and break together": both,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=1.0)
    for name, items in workloads(parser.parse_args().size).items():
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="decklog-work-") as folder:
            found = Ground(Path(folder)).work(items)
        text = ", ".join(f"{count} {what}" for what, count in found.items())
        print(f"{name}: {text}; {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
