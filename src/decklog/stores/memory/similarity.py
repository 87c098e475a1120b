"""Telling whether two lessons say the same thing, or the opposite.

Two texts say the same when their words are the same ones in the same order, but for their forms, for words that say nothing, and
for a clause that is first in one and last in the other. Any other difference keeps them apart: `before` is not `after`, 5432
is not 5433, and `lock a before b` is not `lock b before a`.
"""

import re
from collections import Counter
from functools import lru_cache
from hashlib import sha256
from itertools import chain

from decklog.stores.memory.text import STOP_WORDS, inflection_of, terms_of

_LINES = """
above/below accept/decline accept/refuse accept/reject acquire/release add/remove ahead/behind all/none allow/deny
allow/forbid allow/prevent always/never any/none ascending/descending attach/detach before/after begin/end beginning/end
big/small block/unblock both/neither bottom/top client/server close/open commit/revert create/delete decrease/increase
deny/grant deprecated/mandatory destroy/create disable/enable down/up drop/keep early/late empty/full encrypt/decrypt
even/only everyone/nobody everything/nothing exclude/include exclusive/inclusive exclusive/shared expand/collapse
external/internal fail/pass fail/succeed false/true fast/slow faster/slower few/many fewer/more first/last fixed/random
forbid/permit forward/backward from/to global/local grant/revoke greater/less grow/shrink hard/soft hide/show high/low
higher/lower ignore/heed import/export in/out include/omit input/output inside/outside install/uninstall into/from join/split
keep/delete keep/drop keep/remove keep/skip large/small left/right lenient/strict less/more little/much load/unload
lock/unlock long/short longer/shorter lower/raise lower/upper mandatory/optional manual/automatic maximum/minimum may/must
merge/split most/none mount/unmount narrow/wide negative/positive new/old newest/oldest next/previous none/some off/on
offline/online old/new older/newer on/off open/closed optional/required over/under parallel/serial parent/child
primary/replica private/public production/staging pull/push rarely/often read/write refuse/permit relative/absolute
required/optional reveal/hide right/wrong safe/unsafe same/different send/receive share/vendor simple/complex single/multiple
slow/fast start/stop static/dynamic strong/weak synchronous/asynchronous text/binary tight/loose together/apart trust/distrust
upgrade/downgrade use/avoid usually/never valid/invalid with/without
"""
PAIRS = tuple((one, other) for one, _, other in (pair.partition("/") for pair in _LINES.split()))
NEGATIONS = frozenset(
    ("avoid", "except", "neither", "never", "no", "nobody", "none", "nor", "not", "nothing", "unless", "without"),
)
# What turns a word round that begins with it.
PREFIXES = ("un", "in", "non", "dis", "de", "im", "ir", "a", "mis")
# What thanks and praise are made of, what reports of success have besides, and what neither of them states.
COURTESIES = frozenset(
    (
        *("thanks", "thank", "great", "nice", "awesome", "excellent", "perfect", "congratulations", "welcome", "well"),
        *("worked", "liked", "love", "loved", "happy", "progress", "successfully", "green", "glad"),
    )
)
SUCCESSES = frozenset(
    ("done", "passed", "passing", "finished", "completed", "complete", "everything", "team", "task", "job", "tests", "now")
)
ADVICE = frozenset(
    (
        *("always", "avoid", "because", "before", "keep", "must", "need", "never", "no", "not", "only", "prefer", "should"),
        *("unless", "use", "when", "without"),
    )
)


Words = tuple[str, ...]

# Texts that share less than this of their words are about different things; the opposite of what one states is nearer to it.
NEAR = 0.5
# A text that is near lacks at most this share of the terms.
_LACKING = 0.34
# A text is a part of another where this many of its words in a row, and this share of them, are the other's, and few are not.
LEAST_IN_COMMON, _LEAST_QUOTED, _QUOTED, _MOST_AROUND = 2, 4, 0.4, 6
_LEAST_MORE = 2
# Praise with no more words than these besides is no lesson.
_MOST_BESIDES = 3
# A lesson may differ from another in one place of up to this many words, and still be about the same thing.
_WIDEST = 3
_LEAST_SHARED = 3
# A word of more letters than these may be turned round by what is put before it.
_SHORTEST_TURNED = 3

# Each with parts of which a text has one where the phrase is in it: to look for these takes a tenth of the time.
_PHRASES = tuple(
    (parts, re.compile(pattern), plain)
    for parts, pattern, plain in (
        (("’", "`"), r"[’`]", "'"),
        (("can't", "cannot"), r"\bcan(?:'t|not)\b", "can not"),
        (("won't",), r"\bwon't\b", "not"),
        (("n't",), r"(\w)n't\b", r"\1 not"),
        (("'s",), r"\b(it|there|that|he|she)'s\b", r"\1 is"),
        (("'s",), r"'s\b", ""),
        (
            (" sure ", "remember ", "note", " should"),
            r"^\W*(?:make sure (?:to|that|you)?|remember (?:to|that)|note(?: that|:)|(?:we|you|one) should(?! not)|be sure to)\b",
            " ",
        ),
        (("only ",), r"^only (.+?) (?=(?:when|if|after|before|once|while)\b)", r"\1 only "),
        (("in order to",), r"\bin order to\b", "to"),
        (("s to", "ve to", "ed to"), r"\b(?:has|have|needs?) to\b", "must"),
        (("due to",), r"\bdue to\b", "because of"),
        (("as well",), r"\bas well(?! as)", " "),
        (("get", "got"), r"\b(?:gets?|got) (?=\w+(?:ed|en|ilt)\b)", " "),
        (tuple("0123456789"), r"(\d)(?=(?:ms|s|m|h|kb|mb|gb)\b)", r"\1 "),
    )
)
_EDGES = ".,;:!?\"'()[]{}*`"
_EMPTY = frozenset(
    (
        *("a", "an", "the", "this", "that", "these", "those", "which", "who", "there", "it", "its", "your", "our", "my", "their"),
        *("we", "you", "they", "i", "is", "are", "was", "were", "be", "been", "being", "am", "do", "does", "did", "has", "have"),
        *(
            "had",
            "will",
            "would",
            "shall",
            "of",
            "and",
            "then",
            "so",
            "also",
            "please",
            "just",
            "simply",
            "really",
            "very",
            "quite",
        ),
        *("actually", "basically", "usually", "often", "mostly", "generally", "typically", "normally", "ever", "about", "indeed"),
    )
)
_SAME = {
    "never": "not",
    "if": "when",
    "since": "because",
    "each": "every",
    "using": "with",
    "require": "need",
    "folder": "directory",
    "config": "configuration",
    "configs": "configuration",
    "repo": "repository",
    "dir": "directory",
    "db": "database",
    "docs": "documentation",
    "doc": "documentation",
    "env": "environment",
    "requires": "need",
    "required": "needed",
    "zero": "0",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "backwards": "backward",
    "forwards": "forward",
    "towards": "toward",
    "afterwards": "afterward",
    "broke": "break",
    "broken": "break",
    "ran": "run",
    "took": "take",
    "taken": "take",
    "wrote": "write",
    "written": "write",
    "built": "build",
    "rebuilt": "rebuild",
    "made": "make",
    "kept": "keep",
    "sent": "send",
    "lost": "lose",
    "held": "hold",
}
# What a clause begins with that may as well stand first as last.
_CLAUSES = frozenset(
    (
        *("after", "at", "because", "before", "during", "for", "from", "in", "inside", "on", "to", "under", "until", "unless"),
        *("when", "while", "with", "within", "without"),
    )
)
_CODE = re.compile(r"[_/\\.:#]|\d")


@lru_cache(2048)
def fingerprint(text: str) -> str:
    """Digest a text so that case, blanks and the punctuation around its words make no difference."""
    plain = [chunk.strip(_EDGES).casefold() for chunk in text.split()]
    return sha256(" ".join(chunk for chunk in plain if chunk).encode()).hexdigest()


# A lesson that is written is compared with a few dozen others, and these with many.
@lru_cache(2048)
def _essence(text: str) -> "tuple[Words, Words]":
    """List the words of a text that tell it from others: each in its plain form and spelling, and each as it is said."""
    plain = text.casefold()
    for parts, pattern, replacement in _PHRASES:
        for part in parts:
            if part in plain:
                plain = pattern.sub(replacement, plain)
                break
    chunks = [chunk.strip(_EDGES) for chunk in plain.replace("-", "").split()]
    said = tuple([chunk for chunk in chunks if chunk and chunk not in _EMPTY])
    return tuple(map(_plain_form, said)), said


def essence_of(text: str) -> Words:
    """List the words of a text that tell it from others, each in its plain form and spelling."""
    return _essence(text)[0]


@lru_cache(16_384)
def _plain_form(word: str) -> str:
    word = _SAME.get(word, word)
    if not word.isalpha() or not word.isascii():
        return word
    for british, american in (("isation", "ization"), ("ising", "izing"), ("ised", "ized"), ("ise", "ize"), ("our", "or")):
        if len(word) > 5 and word.endswith(british):
            word = word.removesuffix(british) + american
    form = inflection_of(word)
    # What loses its ending may lose its last letter with it: `escaped`, and so `escape`, is `escap`.
    form = _SAME.get(form, form)
    return form.removesuffix("e") if len(form) > 4 else form


@lru_cache(4096)
def content_of(text: str) -> frozenset[str]:
    """Collect the words of a text that carry content, each in its plain form."""
    return frozenset(word for word in essence_of(text) if word not in STOP_WORDS)


def says_nothing(text: str) -> bool:
    """Return whether a text is thanks, praise or a report of success, and next to nothing besides."""
    words = essence_of(text)
    if _forms(COURTESIES).isdisjoint(words) or not _forms(ADVICE).isdisjoint(words):
        return False
    besides = content_of(text) - _forms(COURTESIES) - _forms(SUCCESSES)
    return sum(not word.isdigit() for word in besides) <= _MOST_BESIDES


@lru_cache
def _forms(words: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_plain_form, words))


def is_part(one: str, other: str) -> bool:
    """Return whether a text quotes another, which states more: words of it in a row, and these are a good part of the first."""
    part, whole = essence_of(one), essence_of(other)
    shared = content_of(one) & content_of(other)
    # Who states hardly more than the part is no whole; and with one word in common, nothing is quoted.
    if len(shared) < LEAST_IN_COMMON or len(content_of(other)) < len(shared) + _LEAST_MORE:
        return False
    least = max(_LEAST_QUOTED, _QUOTED * len(part), len(part) - _MOST_AROUND)
    # What is quoted is in both, in any order: to count that is far quicker than to look for a row, and enough for most.
    return sum(map(frozenset(whole).__contains__, part)) >= least and _longest_run(part, whole) >= least


def _longest_run(one: Words, other: Words) -> int:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, one, other, autojunk=False).find_longest_match().size


def essence_digest(text: str) -> str:
    """Digest the words of a text's essence, in any order: texts that are alike have the same."""
    return sha256(" ".join(sorted(essence_of(text))).encode()).hexdigest()


def alike(one: str, other: str) -> bool:
    """Return whether two texts say the same."""
    if fingerprint(one) == fingerprint(other):
        return True
    left, right = essence_of(one), essence_of(other)
    if not left or len(left) != len(right):
        return False
    return left == right or _turned(left, right) or _turned(right, left)


def _turned(one: Words, other: Words) -> bool:
    """Return whether a clause that is anywhere in one text begins the other, and nothing else differs."""
    if other[0] not in _clause_forms() or Counter(one) != Counter(other):
        return False
    places = [place for place, word in enumerate(one) if place and word == other[0]]
    return any(one[place:end] + one[:place] + one[end:] == other for place in places for end in range(place + 2, len(one) + 1))


@lru_cache(1)
def _clause_forms() -> frozenset[str]:
    return frozenset(map(_plain_form, _CLAUSES))


@lru_cache(1)
def _negation_forms() -> frozenset[str]:
    return frozenset(map(_plain_form, NEGATIONS))


@lru_cache(1)
def _contraries() -> dict[str, set[str]]:
    """Return the words that say the opposite of each."""
    found: dict[str, set[str]] = {}
    for pair in PAIRS:
        one, other = map(_plain_form, pair)
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return found


def contradiction(one: str, other: str) -> str | None:
    """Name the words in which two otherwise equal texts contradict each other; None if they don't."""
    left, right = essence_of(one), essence_of(other)
    is_reordered = len(left) == len(right) and Counter(left) == Counter(right)
    # Most texts that share words are distinguished by this alone.
    if not left or not right or not (is_reordered or _may_contradict(left, right)) or alike(one, other):
        return None
    if is_reordered:
        return "the same words in another order"
    shared, slots = _compared(left, right)
    if shared < _least_shared(left, right) and not (shared >= _LEAST_SHARED and len(slots) == 1):
        return None
    contrary = [slot for slot in slots if _is_contrary(left[slot[0]], right[slot[1]])]
    if not contrary and not (len(slots) == 1 and _is_other(left, left[slots[0][0]], right[slots[0][1]], shared)):
        return None
    said, other_said = _essence(one)[1], _essence(other)[1]
    return "; ".join(f"{_spelled(said[ours])} / {_spelled(other_said[theirs])}" for ours, theirs in contrary or slots)


def _may_contradict(left: Words, right: Words) -> bool:
    """Return whether two texts may say otherwise than each other, which most that share words do not; it takes far less time."""
    ends = _shared_ends(left, right)
    # No more words than these can be shared in the same order, and a single place that differs leaves them at the ends.
    if ends < _LEAST_SHARED and (Counter(left) & Counter(right)).total() < _least_shared(left, right):
        return False
    if not (_negation_forms().isdisjoint(left) and _negation_forms().isdisjoint(right)):
        return True
    if not (_opposites(left).isdisjoint(right) and _opposites(right).isdisjoint(left)):
        return True
    return max(len(left), len(right)) - ends <= _WIDEST


def _least_shared(left: Words, right: Words) -> float:
    """Return how many words two texts share that are about the same thing."""
    return NEAR * (len(left) + len(right)) / 2


@lru_cache(4096)
def _opposites(words: "Words") -> frozenset[str]:
    """Collect what states the opposite of any of these words."""
    return frozenset(chain.from_iterable(map(_opposites_of, words)))


# As for words' forms: a project has a few thousand words, and the same ones come again and again.
@lru_cache(16_384)
def _opposites_of(word: str) -> "Words":
    """List what states the opposite of a word: by the list, or as what the word turns round by its beginning."""
    turned = (word[len(start) :] for start in PREFIXES if _turns(start, word)) if word.startswith(PREFIXES) else ()
    return (*_contraries().get(word, ()), *turned)


def _turns(start: str, word: str) -> bool:
    return word.startswith(start) and len(word) - len(start) > _SHORTEST_TURNED


def _shared_ends(left: Words, right: Words) -> int:
    """Count the words that two texts begin with and end with, each word once."""
    shortest = min(len(left), len(right))
    first = next((place for place in range(shortest) if left[place] != right[place]), shortest)
    left_over = shortest - first
    last = next((place for place in range(left_over) if left[-1 - place] != right[-1 - place]), left_over)
    return first + last


def _compared(left: Words, right: Words) -> tuple[int, list[tuple[slice, slice]]]:
    """Count the words that two texts share in the same order; list where each of them differs from the other."""
    from difflib import SequenceMatcher

    shared, slots = 0, []
    for kind, start, end, other_start, other_end in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            shared += end - start
        else:
            slots.append((slice(start, end), slice(other_start, other_end)))
    return shared, slots


def _is_contrary(ours: Words, theirs: Words) -> bool:
    if _negation_forms().isdisjoint(ours) != _negation_forms().isdisjoint(theirs):
        return True
    return any(_are_contrary(one, other) for one in ours for other in theirs)


def _are_contrary(one: str, other: str) -> bool:
    return other in _opposites_of(one) or one in _opposites_of(other)


def _is_other(left: Words, ours: Words, theirs: Words, shared: int) -> bool:
    """Return whether the one place where two texts differ states another thing of the same subject."""
    if not ours or not theirs or len(ours) > _WIDEST or len(theirs) > _WIDEST or shared < min(_LEAST_SHARED, len(left) - 1):
        return False
    # What is said of another file or test is another lesson: both may hold.
    return not (left[: len(ours)] == ours and any(map(_CODE.search, ours)) and any(map(_CODE.search, theirs)))


def _spelled(words: Words) -> str:
    return " ".join(words) or "nothing"


def groups_of(text: str) -> list[list[str]]:
    """Share a text's terms out so that what is near has all the terms of at least one group.

    A text that is near lacks at most a third of the terms, so with one group more than that, one group is whole: the index is
    asked for a few conjunctions, which stays fast where asking for any of the terms would not. The longest terms are dealt out
    first, so that each group has one: they are seldom common, and to ask how rare each one is takes longer than it saves.
    """
    terms = sorted(set(terms_of(text)), key=lambda term: (-len(term), term))
    spare = max(int(len(terms) * _LACKING), 1) if len(terms) > 1 else 0
    return [group for group in (terms[start :: spare + 1] for start in range(spare + 1)) if group]


def nearness(one: str, other: str) -> float:
    """Return which share of their words two texts have in common, in the same order."""
    left, right = essence_of(one), essence_of(other)
    return 2 * _compared(left, right)[0] / max(len(left) + len(right), 1)
