"""What several processes do at once in the tests of the memory."""

from decklog import Decklog

CYCLE = "A circular import between two modules breaks start-up; move one import into the function that needs it"
PORT = "Give every test worker a port of its own, since two servers can't listen on one address"


def learn_the_same(log: Decklog, _: int) -> None:
    log.memory.remember("failure_patterns", CYCLE)


def learn_nearly_the_same(log: Decklog, number: int) -> None:
    log.memory.remember("failure_patterns", f"{CYCLE} {('really', 'usually', 'often', 'mostly')[number % 4]}")


def recall(log: Decklog, number: int) -> None:
    log.memory.recall(("circular import", "port of a server", "import and port")[number % 3])


def meet_an_error(log: Decklog, number: int) -> None:
    log.patterns.record("shop", "KeyError", f"no 'key{number}' at line {number}", "x" * (number + 1))


def judge_an_error(log: Decklog, number: int) -> None:
    [pattern] = log.patterns.find("shop", min_confidence=0)
    log.patterns.judge(pattern.pattern_hash, "shop", "failure" if number % 4 == 0 else "success")


def repeat_an_insight(log: Decklog, _: int) -> None:
    log.strategies.record("shop", "general", "Read the failing test before the code")


def extract_strategies(log: Decklog, _: int) -> None:
    log.strategies.extract("run_1", "A", "shop")


def note_a_learning(log: Decklog, _: int) -> None:
    log.learnings.note("T-1", "the linter runs twice", key="only-one")
