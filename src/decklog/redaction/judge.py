"""Decide whether a value is a secret: one score from the value, its name and its surroundings.

The weights are trained offline (`benchmarks/train_judge.py`) on the labelled corpus and read from `weights.json`.
"""

import json
import math
import os
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

from decklog.core.ids import is_ours
from decklog.redaction.keyvalue import Candidate, split_name
from decklog.redaction.rules import Lazy, load_table

_LISTS = {name: frozenset(words.split()) for name, words in load_table("words")["values"].items()}
BENIGN, STOP, NOUNS, HOLDERS = (_LISTS[name] for name in ("benign", "stop", "secret_nouns", "holders"))
_PARTS = _LISTS["placeholder_parts"]
_FEATURES = load_table("words")["features"]
_NAME_HINTS, _PREFIX_WORDS, _LINE_WORDS = (_FEATURES[name] for name in ("name_hints", "prefix_words", "line_words"))
_MASK = frozenset("*xX.•-_#?0…●· ")
# A placeholder: a variable, a template, a mask, an instruction.
_PLACEHOLDER = Lazy(
    r"""(?ix)
    ^%env\( | ^(?:%[-+#]?[a-z][:/@. ]?)+$ | ^%(?:\([\w.]*\)s?|[a-z_.]{2,}\d?%)$ | ^%[a-z]/[\w./-]+$ | ^%24(?:%7b)?\w+(?:%7d)?$
    | ^[\#@]\{ | ^\$(?:[({]|\w+\{[^{}]*\}$) | ^\$\d?$ | ^%(?:~[a-z]{0,6})?[\d*]$ | \$\{[^{}]*\} | ^\{\{ | \{\{.*\}\} | \{%\s | <%=
    | ^\$[a-z_]\w*(?:->\w+|::\w+|\[[^\]]*\])*$ | ^\$env:\w+$
    | [._-]<[a-z][a-z0-9 _-]*>$ | ^<[a-z][^<>]*>$ | ^\{[a-z_][\w.]*\}$ | ^\[[a-z][a-z _-]*\]$ | ^\([a-z][a-z _-]*\)$
    | ^(?:enc\[|enc\(|vault:|arn:|op://|ssm:|ext:|env[:.]|secrets?[.:/](?!\d+$)|file:|ref\+|keyring:|pass:|\$ansible|\{env:)
    | ^!(?:ref|sub|vault|secret|env|env_var|getatt|join|importvalue|select|if|findinmap|reference|include|file|base64)\b
    | ^@microsoft\.keyvault\( | ^\.[*+] | ^(?:string|text|digest|references|integer)(?::\w+)+$
    | ^\[?redacted | ^\*{2} | \[redacted: | ^<redacted | [\[<(](?:masked|filtered|hidden|removed|omitted|scrubbed)[\])>]$
    | (?:\b|_)(?:(?:your|my)[-_ .]?|(?:the|some|an?|insert|enter|put|replace|add|paste|fill|change|use)[-_ .])
      (?:[a-z0-9]+[-_ .]){0,3}(?:pass(?:word|wd)?|secret|token|key|api[-_ ]?key|apikey|credentials?|here|value|me|this|it)\b
    | ^(?:change|replace|fill|update|rotate|set)[-_ ]?(?:me|this|it|in)\w*$ | (?:^|[-_ ])change[-_ ](?:me|this|it|in)(?:[-_ ]|$)
    | ^(?:please[-_ ])?(?:replace|change|insert|enter|put|paste|generate|choose|pick|your|supply|provide)
      (?:[-_ ](?:[a-z]{1,12}|\d{1,3}))+$
    | ^(?:placeholder|example|dummy|sample|todo|tbd|fixme)(?:$|[-_ .:]) | (?:[-_ ](?:here|placeholder|goes[-_ ]here|example))$
    | ^(?:fake|dummy|sample|mock(?:ed)?|stub(?:bed)?|bogus)(?:[-_ .][a-z]+)*(?:[-_ .]?\d{1,3})?$
    | \(\?[:=!P<] | \[\^ | \[a-z | \[0-9 | \\[wdsW][+*]? | ^@{1,2}[\w.-]+@{1,2}$ | ^@(?:keychain|env|file):
    | ^(?:required|nullable|bail|sometimes|string|(?:min|max|size|between):\d+)[|,]
    | ^(?:\*{1,2}|\$)(?:\.[a-z_]{2,}|\[\*\])+$ | ^kv/[\w./-]+(?::[\w-]+)?$ | ^@(?:-|(?:~|\.{1,2})?/[\w./-]+)$
    | ^\{cipher\} | ^\$(?:argon2\w*|2[abxy]|[156y]|scrypt|pbkdf2[\w-]*)\$[%*]?$
    | ^(?:x{3,}|\.{2,}|_{2,}|\?+|…+)$ | (?:\.{3}|…)$ | ^[a-z]{2,}(?:[-_.][a-z]+)*(?:[-_.](?:x{3,}|y{3,}|z{3,}))+$
    | ^[\w.-]{0,12}(?:\*{3,}|\.{3}|…)\w{0,6}$ | (?-i:EXAMPLE(?:KEY)?$) | ([x*.])\1{7}
    """
)
_SHAPES = {name: Lazy(source) for name, source in load_table("words")["shapes"].items()}
_SEGMENT = Lazy(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_CLASS = str.maketrans(
    dict.fromkeys("0123456789", "d")
    | dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "l")
    | dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "u")
)
_FIRST, _LAST, _INSIDE = "$<{%@&*!([/~.-#\\+?=:", ")}>];:.=,(", "(){}<>$/\\.,:=@*#|?_-+![]^~&%;"
_BEFORE = "\"'`&?;.$({[/:-@ "
_SIGNS = "!#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_KINDS = ("password", "secret", "token", "api-key", "key", "pin", "auth", "session", "credential", "cookie", "code")
_CONNECTORS = ("=", ":", "=>", ",", "", "is", "|", ">", "call", "==", "to", "was", "/", "?", "for")
_AFTER = ("", "\n", " ", ",", ";", ")", "(", ".", "[", '"', "'", "`", "<", "&", "]", "}", ":")
_LOCAL_HOST = Lazy(r"@(?:localhost|127\.|example|host|db\b|\[::1)")
_DIGEST_NAME = Lazy(
    r"(?i)hash|digest|checksum|etag|fingerprint|commit|integrity|md5|sha\d|public|address|\bid\b|version|build|revision|trace|span|request|uuid"
)
_OWNER = Lazy(r"[\w.$-]+[\"'\]]{0,2}[ \t]*(?::=|=>|={1,2}|:)[ \t]*[@bru]{0,2}[\"'`(\[]{0,2} ")
_PHRASE_NAMES = frozenset(("pwd", "password", "passphrase", "pass", "pw"))
# A line number in a class or a file, such as `main.py:12`.
_PLACE = Lazy(r"[A-Za-z][\w.]*:\d{1,6}")
_ID_BEFORE = Lazy(
    r"(?i)(?:\b(?:session|request|trace|span|run|job|task|correlation|event)|(?:\b|[a-z_-])id)[\"'`]{0,2}[:=]?[ \t\"'`]*$"
)
_SEQUENCES = ("0123456", "1234567", "abcdef", "qwerty", "xxxx", "0000")


def has_shape(shape: str, value: str) -> bool:
    """Return whether a whole value has a shape."""
    return _SHAPES[shape].fullmatch(value) is not None


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder: `<token>`, `${VAR}`, `***`, `changeme`."""
    bare = value.strip().strip("\"'`").rstrip(",;")
    if not bare or bare == "~" or bare.lower() in BENIGN:
        return True
    if _MASK.issuperset(bare[:256]) or (len(set(bare[:64])) <= 2 and len(bare) >= 6 and not bare.isdigit()):
        return True
    return _PLACEHOLDER.search(bare[:96]) is not None


def is_example_token(value: str) -> bool:
    """Return whether a token of a fixed format is an example: `ghp_xxxx…`, `AKIA…EXAMPLE`."""
    low = value.lower()
    return (
        "example" in low
        or "xxxx" in low
        or "****" in value
        or "..." in value
        or low.endswith(("your", "here"))
        or "your" in low[:24]
    )


def looks_random(value: str) -> bool:
    """Return whether a value is unlikely to be words: long, with mixed characters and unusual letter pairs."""
    if len(value) < 8 or " " in value:
        return False
    classes = (any(map(str.islower, value)) + any(map(str.isupper, value))) * 1 + any(map(str.isdigit, value))
    return classes > 1 and entropy(value) > 2.8 and wordiness(value) < -2.6


def is_mixed(value: str) -> bool:
    """Return whether a value mixes letters with digits or punctuation."""
    return len(value) > 5 and any(map(str.isalpha, value)) and not value.replace("_", "").isalpha() and not is_placeholder(value)


def is_reference(value: str) -> bool:
    """Return whether a value refers to something: a path, an address, a digest or a name."""
    return any(
        has_shape(shape, value) for shape in ("path", "url", "uuid", "digest", "upper_snake", "snake", "dotted", "call", "kebab")
    )


def entropy(value: str) -> float:
    """Return the Shannon entropy of a value in bits per character."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values()) if size else 0.0


def features(candidate: Candidate) -> list[float]:
    """Return the features of a candidate, in the order of `feature_names()`."""
    value = candidate.value[:200]
    return [*_value_features(value), *_shape_features(value), *_name_features(candidate, value), *_context_features(candidate)]


def _value_features(value: str) -> list[float]:
    size = len(value)
    classes = value.translate(_CLASS)
    lower, upper, digit = classes.count("l"), classes.count("u"), classes.count("d")
    space = value.count(" ")
    sign = size - lower - upper - digit - space
    segments = _SEGMENT.findall(value)
    words = [segment.lower() for segment in segments if segment.isalpha()]
    blanks = value.lower().split()
    changes = sum(one != two for one, two in pairwise(classes))
    return [
        *(size, lower / size, upper / size, digit / size, sign / size, space),
        (lower > 0) + (upper > 0) + (digit > 0) + (sign > 0),
        entropy(value),
        changes / size,
        len(set(value)) / size,
        wordiness(value),
        min((wordiness(word) for word in words if len(word) > 3), default=0.0),
        max((len(word) for word in words), default=0),
        max((len(segment) for segment in segments if segment.isdigit()), default=0),
        len(segments),
        sum(len(word) for word in words if len(word) > 3) / size,
        sum(word in BENIGN for word in words),
        sum(word in _PARTS for word in words),
        sum(word in NOUNS for word in words),
        len(blanks),
        sum(word.strip(".,!?:;\"'") in STOP for word in blanks) / max(1, len(blanks)),
        digit,
        upper,
        len({char for char in value if char in _SIGNS}),
        float(value.isascii()),
        float(any(sequence in value.lower() for sequence in _SEQUENCES)),
        float(value[:1].isupper() and lower > 0 and upper == 1),
        float(bool(digit) and value.rstrip("!?.#$*@")[-1:].isdigit()),
        float(value[-1:] in "!?#$*@%&"),
    ]


def _shape_features(value: str) -> list[float]:
    found = [float(shape.fullmatch(value) is not None) for shape in _SHAPES.values()]
    found += [float(value[:1] == char) for char in _FIRST]
    found += [float(value[-1:] == char) for char in _LAST]
    found += [float(char in value) for char in _INSIDE]
    found.append(float(is_placeholder(value)))
    found.append(float(value.lower() in BENIGN))
    first = value.split(".")[0].lower()
    found.append(float("." in value and first in HOLDERS))
    return found


def _name_features(candidate: Candidate, value: str) -> list[float]:
    name = candidate.name if candidate.source in ("named", "cookie") else ""
    parts = split_name(name[-96:])
    low = value.lower().replace("-", "").replace("_", "")
    return [
        *(float(candidate.kind == kind) for kind in _KINDS),
        float(name.isupper()),
        float("." in name),
        float("$" in name or "@" in name),
        float("-" in name.strip("-")),
        len(parts),
        len(name),
        float(any(hint in parts for hint in _NAME_HINTS)),
        *(float(hint in parts) for hint in _NAME_HINTS),
        float(bool(low) and "".join(parts).endswith(low)),
        float(bool(parts) and parts[-1] in low),
        float(any(char.isupper() for char in name) and not name.isupper()),
    ]


def _context_features(candidate: Candidate) -> list[float]:
    sign = candidate.sign.split(" ")[0].strip()
    after, before = candidate.after[:1], candidate.before[-1:]
    return [
        *(float(sign == connector) for connector in _CONNECTORS),
        float(sign not in _CONNECTORS),
        *(float(after == char) for char in _AFTER),
        *(float(candidate.quote == mark) for mark in ("", '"', "'", "`")),
        float(candidate.quote != "" and after == candidate.quote),
        float(candidate.is_option),
        float(candidate.is_spaced),
        float(candidate.is_name_quoted),
        float(candidate.starts_line),
        *(float(before == char) for char in _BEFORE),
        *(float(candidate.source == source) for source in sources()),
        float(candidate.source.startswith("prose")),
        float(candidate.source.startswith("rule")),
        float(candidate.source.startswith("near")),
        *(float(candidate.source != "named" and word in candidate.name.lower()) for word in _PREFIX_WORDS),
        float(candidate.value in candidate.name),
        float(candidate.after.startswith("@") and _LOCAL_HOST.match(candidate.after) is not None),
        float(bool(_DIGEST_NAME.search(candidate.name))),
        *_line_features(candidate),
    ]


def _line_features(candidate: Candidate) -> list[float]:
    line = candidate.line.lower()
    words = line.split()
    return [
        len(line),
        len(words),
        float(bool(_DIGEST_NAME.search(line))),
        *(float(word in line) for word in _LINE_WORDS),
        float(_OWNER.search(candidate.line[:200]) is not None and candidate.source.startswith(("near", "prose"))),
        sum(line.count(char) for char in "(){};=<>") / (len(line) + 1),
        sum(word.strip(".,!?:;\"'") in STOP for word in words) / max(1, len(words)),
    ]


@cache
def sources() -> tuple[str, ...]:
    """Return the sources of candidates: names, rules that need a score, and the sentence groups."""
    table = load_table("prose")
    rules = ("rule-value", "rule-random", "rule-mixed", "rule-likely")
    return (
        "named",
        "cookie",
        *rules,
        "near-0",
        "near-1",
        "near-2",
        "near-3",
        *(f"prose-{one['id']}" for one in table["sentence"]),
    )


_A = ord("a")


def wordiness(value: str) -> float:
    """Return how word-like the letters of a value are: the mean log-likelihood of their pairs."""
    table = load_weights()["pairs"]
    low = value.lower()
    total, count = 0, 0
    for one, two in pairwise(low):
        if "a" <= one <= "z" and "a" <= two <= "z":
            total += table[(ord(one) - _A) * 26 + ord(two) - _A]
            count += 1
    return total / (10 * count) if count else 0.0


@cache
def load_weights() -> dict[str, Any]:
    """Return the trained weights."""
    with open(os.path.join(os.path.dirname(__file__), "weights.json"), "rb") as file:
        return dict(json.loads(file.read()))


def score(candidate: Candidate) -> float:
    """Return the score of a candidate: above 0 it is more likely a secret than not."""
    given = features(candidate)
    model = load_weights()
    total = model["bias"]
    for node in model["trees"]:
        # A node is a feature, a threshold and two branches; a leaf is a number.
        while type(node) is list:
            feature, threshold, left, right = node
            node = left if given[feature] <= threshold else right
        total += node
    return float(total)


def explain(candidate: Candidate, most: int = 5) -> tuple[str, ...]:
    """Return the features with the largest influence on the score, with their values and contributions."""
    given, shares = features(candidate), Counter[int]()
    for tree in load_weights()["trees"]:
        node, path = tree, []
        while isinstance(node, list):
            path.append(node[0])
            node = node[2] if given[node[0]] <= node[1] else node[3]
        for feature in path:
            shares[feature] += node / len(path)
    names = feature_names()
    top = sorted(shares, key=lambda one: -abs(shares[one]))[:most]
    return tuple(f"{names[one]}={given[one]:g} ({shares[one]:+.2f})" for one in top)


_VALUE_NAMES = """
length lower upper digits signs blanks classes entropy changes distinct wordiness least_wordy_part longest_word longest_number
parts word_share benign_words placeholder_words secret_words words stop_words digit_count capital_count sign_kinds ascii sequence
capitalized ends_in_digit ends_in_sign
"""
_NAME_NAMES = "name_upper name_dotted name_sigil name_hyphen name_parts name_length name_hint"


@cache
def feature_names() -> tuple[str, ...]:
    """Return a name for each feature, for people."""
    value = _VALUE_NAMES.split()
    shape = [f"is_{name}" for name in _SHAPES] + [f"starts_{char}" for char in _FIRST] + [f"ends_{char}" for char in _LAST]
    shape += [f"has_{char}" for char in _INSIDE] + ["placeholder", "benign", "setting_of_program"]
    name = [f"kind_{kind}" for kind in _KINDS] + _NAME_NAMES.split()
    name += [f"name_{hint}" for hint in _NAME_HINTS] + ["value_ends_name", "value_has_noun", "name_camel"]
    context = [f"tie_{connector or 'none'}" for connector in _CONNECTORS] + ["tie_other"] + [f"after_{char!r}" for char in _AFTER]
    context += [
        "bare",
        "double_quoted",
        "single_quoted",
        "backquoted",
        "closed",
        "option",
        "spaced",
        "name_quoted",
        "starts_line",
    ]
    context += [f"before_{char}" for char in _BEFORE] + [f"source_{one}" for one in sources()] + ["prose", "rule", "near"]
    context += [f"prefix_{word}" for word in _PREFIX_WORDS] + ["value_in_prefix", "local_host", "digest_name"]
    line = ["line_length", "line_words", "line_digest", *(f"line_{word.strip()}" for word in _LINE_WORDS)]
    line += ["owned", "line_code", "line_stop"]
    return (*value, *shape, *name, *context, *line)


def is_clearly_harmless(candidate: Candidate) -> bool:
    """Return whether a candidate is harmless without a score: too short, a known word, or an identifier."""
    value = candidate.value
    if len(value) < 3 or value.lower() in BENIGN or is_ours(value):
        return True
    if value.isalpha() and value.islower():
        # A word of a sentence, or an identifier.
        return (candidate.kind in ("key", "token", "auth") and len(value) < 16) or (
            candidate.source.startswith("prose")
            and not candidate.quote
            and not (candidate.source.endswith("-pair") and candidate.sign)
        )
    if value.isdigit() and candidate.source in ("prose-name-below", "prose-name-answer", "prose-name-odd"):
        return True
    if value.endswith(("...", "…")) or candidate.after == "...":
        return True
    if candidate.name[:5].lower().rstrip() == "pass" and not candidate.sign and _is_name(value):
        # "pass" as a verb, as in: pass `proxy_config`.
        return True
    if candidate.source.startswith("prose") and has_shape("uuid", value) and _ID_BEFORE.search(candidate.line[:160]):
        return True
    if candidate.source.startswith("near") and _is_program_name(candidate):
        return True
    # Digests and ids occur near any word.
    is_loose = candidate.source.startswith("near-0") and not candidate.quote and candidate.sign in ("", ",", "with", "as", "to")
    return is_loose and (has_shape("hex", value) or has_shape("uuid", value))


def _is_name(value: str) -> bool:
    """Return whether a value is an identifier with underscores or a member of a module: `proxy_config`, `httpx.Client`."""
    if "_" in value and value.replace("_", "").isalpha():
        return True
    return has_shape("dotted", value.lstrip("~")) and value.split(".")[-1].isalpha()


def _is_program_name(candidate: Candidate) -> bool:
    """Return whether a value near a word for a secret is clearly a name, an id or a placeholder."""
    value = candidate.value
    if _PLACE.fullmatch(value) or is_placeholder(value):
        return True
    if candidate.source == "near-0" and _ID_BEFORE.search(candidate.name):
        return True
    if candidate.quote:
        return False
    is_assigned = candidate.starts_line and candidate.after.lstrip(" ").startswith("=")
    is_imported = candidate.line.lstrip().startswith(("from ", "import "))
    is_called = candidate.after.startswith("(")
    return is_assigned or is_imported or is_called or _is_name(value)


def is_secret(candidate: Candidate) -> bool:
    """Return whether a candidate is a secret."""
    if len(candidate.value) < 3 or candidate.value.startswith("[redacted"):
        return False
    return is_plain_phrase(candidate) or score(candidate) > load_weights()["threshold"]


def is_plain_phrase(candidate: Candidate) -> bool:
    """Return whether a password setting is a phrase of plain words that fills its line: `pwd: correct horse`."""
    if candidate.name.lower() not in _PHRASE_NAMES or not candidate.starts_line or candidate.after[:1] not in ("", "\n"):
        return False
    words = candidate.value.split(" ")
    if (
        candidate.quote
        or not 1 < len(words) < 7
        or not all(len(word) > 3 and word.isalpha() and word.islower() for word in words)
    ):
        return False
    return 2 * sum(word in BENIGN or word in STOP for word in words) <= len(words)
