"""An agent without a model: it finds a script in what it is told to do, and follows it.

The script is a line `SCRIPT [[...], ...]`, or `SCRIPT-2 …` for the second round, or `SCRIPT-NAME …` for an agent that is called
with its name; each step is a verb and its arguments. Run as a program of its own.
"""

import json
import os
import signal
import subprocess
import sys
import time


def git(*words: str) -> None:
    subprocess.run(["git", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def write(path: str, text: str, mode: str = "w") -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, mode, encoding="utf-8") as file:
        file.write(text)


def child(*, seconds: float, is_deaf: bool) -> None:
    """Leave a process behind that has a session of its own and no parent here."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    if is_deaf:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    time.sleep(seconds)
    os._exit(0)


def replace(path: str, old: str, new: str) -> None:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    write(path, text.replace(old, new))


told: list = []  # type: ignore[type-arg]


def follow(step: list) -> None:  # type: ignore[type-arg]
    verb, *given = step
    match verb:
        case "write":
            write(*given)
        case "append":
            write(*given, "a")
        case "replace":
            replace(*given)
        case "delete":
            os.unlink(given[0])
        case "git":
            git(*given)
        case "commit":
            git("add", "-A")
            git("commit", "-q", "-m", given[0] if given else "Change")
        case "run":
            subprocess.run(given[0], check=False)
        case "sleep":
            time.sleep(given[0])
        case "print":
            print(given[0] if isinstance(given[0], str) else json.dumps(given[0]), flush=True)
        case "repeat":
            for _ in range(given[0]):
                for inner in given[1]:
                    follow(inner)
        case "once":
            # What is met once and is gone then, such as a limit: the file tells the next attempt.
            if not os.path.exists(given[0]):
                write(given[0], "")
                for inner in given[1]:
                    follow(inner)
        case "copy-brief":
            write(given[0], "\n".join(told))
        case "deaf":
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
        case "child":
            child(seconds=given[0], is_deaf=True)
        case "wait":
            while not os.path.exists(given[0]):
                time.sleep(0.01)
        case "exit":
            sys.exit(given[0])
        case _:
            raise AssertionError(verb)


def main() -> None:
    told.extend(sys.stdin.read().splitlines())
    number = next((line.removeprefix("Round ") for line in told if line.startswith("Round ")), "1")
    scripts = dict(line.split(" ", 1) for line in told if line.startswith("SCRIPT"))
    names = [f"SCRIPT-{name}" for name in (*sys.argv[1:], number)]
    for step in json.loads(next((scripts[name] for name in (*names, "SCRIPT") if name in scripts), "[]")):
        follow(step)


if __name__ == "__main__":
    main()
