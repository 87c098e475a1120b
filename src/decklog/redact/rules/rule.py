"""The shape of a rule, and the whole table."""

from typing import NamedTuple


class Rule(NamedTuple):
    """One kind of secret: what it is called, what gives it away, and what of it may stay.

    `keywords` are lower-case; the rule can only match a text that holds one of them.
    `keep` is the pattern of what comes right before the secret and stays, `until` of what must follow it.
    A `random` rule has a prefix that ordinary names share, so its match must also look random.
    A `glued` rule may start in the middle of a word.
    """

    name: str
    keywords: tuple[str, ...]
    pattern: str
    keep: str = ""
    until: str = ""
    random: bool = False
    glued: bool = False


def rule(
    name: str,
    keywords: str,
    pattern: str,
    *,
    keep: str = "",
    until: str = "",
    random: bool = False,
    glued: bool = False,
) -> Rule:
    """Write a rule with its keywords as one string."""
    return Rule(name, tuple(keywords.split()), pattern, keep, until, random, glued)
