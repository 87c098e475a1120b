"""An agent without a model: it finds a script in what it is told to do, and follows it.

The script is a line `SCRIPT [[...], ...]`, or `SCRIPT-2 …` for the second round, or `SCRIPT-NAME …` for an agent that is called
with its name; each step is a verb and its arguments. Run as a program of its own, hundreds of times: what few scripts need is
imported by those.
"""

import os
import sys
import time

_JSON = {"true": True, "false": False, "null": None}


def git(*words: str) -> None:
    quiet = [(os.POSIX_SPAWN_OPEN, handle, os.devnull, os.O_WRONLY, 0) for handle in (1, 2)]
    child = os.posix_spawnp("git", ["git", *words], os.environ, file_actions=quiet)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, words


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
        ignore("SIGTERM", "SIGINT", "SIGHUP")
    time.sleep(seconds)
    os._exit(0)


def ignore(*names: str) -> None:
    import signal

    for name in names:
        signal.signal(getattr(signal, name), signal.SIG_IGN)


def say(told: object) -> None:
    if not isinstance(told, str):
        import json

        told = json.dumps(told)
    print(told, flush=True)


def run(words: list[str]) -> None:
    import subprocess

    subprocess.run(words, check=False)


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
            run(given[0])
        case "sleep":
            time.sleep(given[0])
        case "print":
            say(given[0])
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
            ignore("SIGTERM", "SIGINT")
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
    wanted = next((scripts[name] for name in (*names, "SCRIPT") if name in scripts), "[]")
    # JSON as Python reads it, which knows three of its words by other names.
    for step in eval(wanted, dict(_JSON)):
        follow(step)


if __name__ == "__main__":
    main()
