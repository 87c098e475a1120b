"""What builds and tests print in a day, as a coding agent's tools record it: made by a script, the same every time."""

import random
from collections.abc import Callable, Iterator

_PARTS = ("parser", "lexer", "ledger", "tasks", "leases", "budget", "router", "states", "journal", "chain", "export", "memory")
_VERBS = ("keeps", "refuses", "finds", "moves", "counts", "reads", "writes", "waits_for", "gives_back", "names")
_NOUNS = ("a_claim", "an_entry", "every_row", "the_last_page", "two_runs", "no_secret", "a_lost_lease", "its_own_text")


def _compiled(dice: random.Random, number: int) -> str:
    part = dice.choice(_PARTS)
    line = (
        f"[{number}/2311] Building CXX object src/{part}/CMakeFiles/{part}.dir/{dice.choice(_PARTS)}_{dice.randrange(99)}.cc.o\n"
    )
    if dice.random() < 0.1:
        name = f"{dice.choice(_PARTS)}{dice.randrange(99)}"
        line += (
            f"src/{part}.cc:{dice.randrange(900)}:{dice.randrange(80)}: warning: unused variable '{name}' [-Wunused-variable]\n"
        )
    return line


def _tested(dice: random.Random, number: int) -> str:
    part, name = dice.choice(_PARTS), f"{dice.choice(_VERBS)}_{dice.choice(_NOUNS)}"
    outcome = "FAILED" if dice.random() < 0.01 else "PASSED"
    place = f"tests/{part}/test_{dice.choice(_PARTS)}.py::test_it_{name}[{dice.choice(('sqlite', 'postgres'))}]"
    line = f"{place} {outcome} [{number % 100:3d}%]\n"
    if outcome == "FAILED":
        line += f"    assert found == {dice.randrange(10_000)}\nE   assert {dice.randrange(10_000)} == {dice.randrange(10_000)}\n"
    return line


def _fetched(dice: random.Random, number: int) -> str:
    version = f"{dice.randrange(9)}.{dice.randrange(40)}.{dice.randrange(20)}"
    digest = "".join(dice.choices("0123456789abcdef", k=12))
    return (
        f"layer {digest}: fetched {dice.choice(_PARTS)}-{dice.choice(_PARTS)} {version} ({number}, {dice.randrange(9_000)} kB)\n"
    )


_KINDS: tuple[Callable[[random.Random, int], str], ...] = (_compiled, _tested, _tested, _fetched)


def outputs(count: int, seed: int = 17) -> Iterator[str]:
    """Return `count` outputs of 70 to 300 kB."""
    dice = random.Random(seed)
    for _ in range(count):
        line_of, left, lines = dice.choice(_KINDS), dice.randrange(70_000, 300_000), list[str]()
        while left > 0:
            lines.append(line_of(dice, len(lines)))
            left -= len(lines[-1])
        yield "".join(lines)
