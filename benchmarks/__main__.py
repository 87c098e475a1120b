"""Run every measurement, or those named: `python -m benchmarks journal tasks`."""

import sys
from importlib import import_module

from benchmarks.measure import meets

ALL = (
    "journal",
    "pages",
    "fairness",
    "scale",
    "large",
    "calls",
    "hooks",
    "provenance",
    "tasks",
    "streams",
    "redaction",
    "judging",
    "confinement",
    "ledger",
    "recall",
    "transfer",
    "damage",
    "importing",
    "history",
    "bazinga",
    "acp",
    "langgraph",
)


def main(names: list[str]) -> int:
    """Run measurements; the exit code shows whether all targets were met."""
    missed = []
    for name in names or ALL:
        print(f"\n== {name}", flush=True)
        rows = import_module(f"benchmarks.{name}").main()
        missed += [f"{name}: {row['name']}" for row in rows if meets(row) is False]
    print("\nAll targets met." if not missed else "\nMissed:\n  " + "\n  ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
