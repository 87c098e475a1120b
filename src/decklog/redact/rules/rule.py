"""The shape of a rule, and the whole table."""

from typing import NamedTuple

# What is no word of a sentence: it has a digit or a sign in it.
SIGNED = r"[^\s\"'\\]*[0-9@#$%^&*!][^\s\"'\\]*"


class Rule(NamedTuple):
    """One kind of secret: what it is called, what gives it away, and what of it may stay.

    `keywords` are lower-case; the rule can only match a text that holds one of them.
    `keep` is the pattern of what comes right before the secret and stays, `until` of what must follow it, `start` of what `keep`
    begins with, where looking for all of it would be slow, and `before` has the names of which
    one must stand before `keep` then.
    A `random` rule has a prefix that ordinary names share, so its match must also look random.
    An `odd` rule has words of a sentence or names in its place too, so its match must have a number or a sign among its letters.
    A `glued` rule may start in the middle of a word.
    """

    name: str
    keywords: tuple[str, ...]
    pattern: str
    keep: str = ""
    until: str = ""
    random: bool = False
    odd: bool = False
    glued: bool = False
    start: str = ""
    before: tuple[str, ...] = ()


def rule(
    name: str,
    keywords: str,
    pattern: str,
    *,
    keep: str = "",
    until: str = "",
    random: bool = False,
    odd: bool = False,
    glued: bool = False,
    start: str = "",
    before: str = "",
) -> Rule:
    """Write a rule with its keywords as one string."""
    return Rule(name, tuple(keywords.split()), pattern, keep, until, random, odd, glued, start, tuple(before.split()))
