"""Searches for examples that no test run has tried yet. Run it as `python -m tests.explore`, or with `make explore`."""

import argparse
import random
import re
import shlex
import subprocess
import sys
import time

from tests.searches import EXPLORE

NO_TESTS = 5
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


def main() -> int:
    """Run the searching tests round after round, each with another seed, until one fails or the time is over."""
    options = _arguments()
    dice = random.SystemRandom()
    ends = time.monotonic() + options.minutes * 60 if options.minutes else None
    rounds = 0
    while rounds == 0 or ends is None or time.monotonic() < ends:
        rounds += 1
        seed = dice.randrange(2**32)
        print(f"Round {rounds}, seed {seed}", flush=True)
        code, output = _search(seed, options.tests, options.processes)
        if code:
            print(output)
            print(_replay(seed, output, options.tests) if code != NO_TESTS else "None of these tests searches.")
            return code
    print(f"Rounds: {rounds}. Nothing found.")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, help="begin no round after so many minutes; without it, search on")
    parser.add_argument("--processes", type=int, default=2, help="search in so many processes at a time; 0 for this one alone")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files or tests to search in; all of them unless named")
    return parser.parse_args()


def _search(seed: int, tests: list[str], processes: int) -> tuple[int, str]:
    words = [sys.executable, "-m", "pytest", "-n", str(processes), "-m", "hypothesis", "-rfE", *_how(seed), *tests]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def _how(seed: int) -> list[str]:
    return [f"--hypothesis-profile={EXPLORE}", f"--hypothesis-seed={seed}"]


def _replay(seed: int, output: str, tests: list[str]) -> str:
    found = _FAILED.findall(output) or tests
    words = [sys.executable, "-m", "pytest", *_how(seed), *found]
    return f"Found with seed {seed}. Replay it with:\n    {shlex.join(words)}"


if __name__ == "__main__":
    sys.exit(main())
