"""Scan texts and JSON values, and replace secrets with markers such as `[redacted:github-token]`."""

from binascii import Error, a2b_base64
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from decklog.redaction import judge, keyvalue, nearby, prose
from decklog.redaction.keyvalue import Candidate
from decklog.redaction.matcher import BytePattern, KeywordSet
from decklog.redaction.normalize import TextView, join_lines, normalize, strip_prefixes, wrapped_end
from decklog.redaction.rules import Lazy, RedactionRule, load_table, shipped_rules

# Later rounds find values that match only next to a marker.
_MOST_ROUNDS = 3
_SHORT = 8_192
# Limits for replacing the repeats of a found value: a shorter value may occur by chance.
_SHORTEST_REPEAT, _LONGEST_REPEAT, _MOST_REPEATS = 8, 256, 64
# Limit on the different values of one text that are scored. A cheap test decides about the others, to bound the time.
_MOST_JUDGED = 200
# Kinds of findings by certainty: of two overlapping findings, the more certain one determines the kind.
_RANKS = {"prose": 3, "near": 4}
_SEPARATOR = "\n\n\x01\n\n"
# Four characters of base64 that decode to three of ASCII text.
_GROUP = r"[CI-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
_BASE64 = BytePattern(rf"(?:{_GROUP}){{4,}}[A-Za-z0-9+/_-]{{0,3}}={{0,2}}")
_BASE64_RUN = Lazy(r"[A-Za-z0-9+/_-]*={0,2}")
_WRAPPABLE = Lazy(r"[A-Za-z0-9_+/=.~$-]")


class SecretFinding(NamedTuple):
    """A secret in a text: its range, its kind, and the rule or score behind it."""

    start: int
    end: int
    kind: str
    reason: str
    # Rules that need no further check win over names and sentences.
    rank: int = 1
    candidate: Candidate | None = None


class Explanation(NamedTuple):
    """A finding as `decklog redact --explain` prints it."""

    start: int
    end: int
    kind: str
    reason: str
    score: float | None = None
    features: tuple[str, ...] = ()


class Redactor:
    """Finds secrets by the shipped rules and those of the user and the repository."""

    def __init__(self, rules: Sequence[RedactionRule] = (), allow: Sequence[str] = ()) -> None:
        self._rules = (*rules, *shipped_rules())
        self._patterns = [BytePattern(rule.pattern) for rule in self._rules]
        self._rule_allow = {index: _join_patterns(rule.allow) for index, rule in enumerate(self._rules) if rule.allow}
        table = load_table("rules").get("allow", {})
        self._allowed_values = frozenset(table.get("values", ()))
        self._contexts = [BytePattern(finding) for finding in table.get("contexts", ())]
        self._context_words = tuple(table.get("context_words", ()))
        self._allowed = _join_patterns((*table.get("patterns", ()), *allow))
        self._sentences = prose.load_sentences()
        self._first_sentence = len(self._rules)
        self._keyvalue = self._first_sentence + len(self._sentences)
        self._base64 = self._keyvalue + 1
        self._nearby = self._keyvalue + 2
        self._keywords = KeywordSet(self._entries())
        self._line_rules = frozenset(
            index for index, rule in enumerate(self._rules) if "(?m:^" in rule.pattern or "\\n" in rule.pattern
        )
        self._raw = frozenset(index for index, rule in enumerate(self._rules) if rule.raw)

    def _entries(self) -> Iterator[tuple[int, Sequence[str], str]]:
        for index, rule in enumerate(self._rules):
            yield index, rule.keywords, rule.trigger
        for index, sentence in enumerate(self._sentences, self._first_sentence):
            yield index, (), sentence.trigger
        yield self._keyvalue, (), keyvalue.TRIGGER
        yield self._base64, (), r"[a-z0-9+/_-]{16}"
        yield self._nearby, (), nearby.TRIGGER

    def redact(self, text: str) -> str:
        """Return a text with its secrets replaced."""
        return self.scan(text)[0]

    def scan(self, text: str) -> tuple[str, bool]:
        """Return a text with its secrets replaced, and whether there were any."""
        shown = text
        for _ in range(_MOST_ROUNDS):
            findings = self.find(shown)
            if not findings:
                break
            shown = _replace(shown, findings)
            if len(shown) > _SHORT:
                break
        return shown, shown is not text

    def explain(self, text: str) -> list[Explanation]:
        """Return the findings of a text with the rule, or the score and the features, that decided."""
        found = []
        for finding in self.find(text):
            if finding.candidate is None:
                found.append(Explanation(finding.start, finding.end, finding.kind, finding.reason))
            else:
                why = judge.explain(finding.candidate)
                found.append(
                    Explanation(
                        finding.start, finding.end, finding.kind, finding.reason, round(judge.score(finding.candidate), 2), why
                    )
                )
        return found

    def find(self, text: str) -> list[SecretFinding]:
        """Return the secrets of a text, in order and without overlaps."""
        view = normalize(text)
        present = self._keywords.present(view.data)
        if not present:
            return []
        plain = view if view.is_plain else TextView(text)
        found = [finding for index in self._raw & present for finding in self._find_by_rule(index, plain, {})]
        judgements: dict[Any, bool] = {}
        found += _to_origin(view, self._find_in_view(view, present, judgements))
        return _merge_findings(found)

    def matching_rules(self, text: str) -> set[str]:
        """Return the ids of the rules that find something in a text."""
        view = normalize(text)
        plain = TextView(text)
        return {
            self._rules[index].id
            for index in self._keywords.present(view.data)
            if index < self._first_sentence and any(self._find_by_rule(index, plain if index in self._raw else view, {}))
        }

    def scan_json(self, value: Any) -> tuple[Any, bool]:
        """Return a JSON value with its secrets replaced; the same object if there are none."""
        if isinstance(value, str):
            return self.scan(value)
        done: dict[int, Any] = {}
        for node in reversed(_containers(value)):
            done[id(node)] = self._redact_dict(node, done) if isinstance(node, dict) else self._redact_list(node, done)
        shown = done.get(id(value), value)
        return shown, shown is not value

    def json_strings(self, value: Any) -> list[str] | None:
        """Return every string and key of a JSON value; None if one of its keys names a secret."""
        strings: list[str] = []
        for node in [value] if isinstance(value, str) else _containers(value):
            if isinstance(node, str):
                strings.append(node)
            elif isinstance(node, dict):
                if any(
                    isinstance(key, str) and isinstance(item, str) and keyvalue.kind_of_name(key) for key, item in node.items()
                ):
                    return None
                strings += [finding for pair in node.items() for finding in pair if isinstance(finding, str)]
            else:
                strings += [finding for finding in node if isinstance(finding, str)]
        return strings

    def _redact_item(self, item: Any, done: dict[int, Any]) -> Any:
        return self.scan(item)[0] if isinstance(item, str) else done.get(id(item), item)

    def _redact_list(self, node: Any, done: dict[int, Any]) -> Any:
        items = [self._redact_item(item, done) for item in node]
        return node if all(new is old for new, old in zip(items, node, strict=True)) else items

    def _redact_dict(self, node: dict[Any, Any], done: dict[int, Any]) -> dict[Any, Any]:
        shown: dict[Any, Any] = {}
        for key, item in node.items():
            new_key = self.scan(key)[0] if isinstance(key, str) else key
            if new_key is not key:
                new_key = _unique_key(new_key, node, shown)
            name = _find_value_name(node, key)
            shown[new_key] = self._redact_named(name, item) if name and isinstance(item, str) else self._redact_item(item, done)
        is_same = all(finding is two and shown[finding] is node[two] for finding, two in zip(shown, node, strict=True))
        return node if is_same else shown

    def _redact_named(self, name: str, item: str) -> str:
        kind = keyvalue.kind_of_name(name)
        if kind and item and not self._is_allowed(item):
            whole = Candidate(0, len(item), item[:200], kind, "named", name, ":", '"', '"', '"', False, False, True)
            # A JSON key is stronger evidence than a name in a text.
            is_sure = kind in ("password", "secret") and judge.is_mixed(item) and " " not in item and not judge.is_reference(item)
            if is_sure or self._is_secret(whole, {}):
                return f"[redacted:{kind}]"
        return self.scan(item)[0]

    def _find_in_view(self, view: TextView, present: frozenset[int], judgements: dict[Any, bool]) -> list[SecretFinding]:
        rules = sorted(index for index in present if index < self._first_sentence and index not in self._raw)
        found = [finding for index in rules for finding in self._find_by_rule(index, view, judgements)]
        # Only rules for whole lines need the prefixes removed; tokens match anywhere.
        reads_lines = self._needs_line_scan(view, present, rules)
        stripped = strip_prefixes(view) if reads_lines and ("\n" in view.text or _may_have_prefix(view.text)) else None
        if stripped is None:
            found += self._find_named(view, present, judgements)
        else:
            inner = [finding for index in rules for finding in self._find_by_rule(index, stripped, judgements)]
            found = [finding for finding in found if finding.rank == 0 or not stripped.drops(finding.start)] + _to_origin(
                stripped, inner
            )
            found += _to_origin(stripped, self._find_named(stripped, present, judgements))
        if self._base64 in present:
            found += self._find_encoded(view, judgements)
        if "\n" in view.text:
            found = _extend_all(view.text, found)
            found += self._find_wrapped(stripped or view, view, judgements)
        found = self._drop_public_contexts(view, found)
        return found + _find_repeats(view.text, found)

    def _needs_line_scan(self, view: TextView, present: frozenset[int], rules: list[int]) -> bool:
        named = [index for index in present if index >= self._first_sentence and index != self._base64]
        if named == [self._keyvalue] and self._line_rules.isdisjoint(rules):
            return any(not judge.is_clearly_harmless(finding) for finding in keyvalue.find_candidates(view))
        return bool(named) or not self._line_rules.isdisjoint(rules)

    def _drop_public_contexts(self, view: TextView, found: list[SecretFinding]) -> list[SecretFinding]:
        """Return the findings outside of public content, such as certificates, images, public keys and lock files."""
        if not found or not any(word in view.text for word in self._context_words):
            return found
        spans = sorted((start, end) for pattern in self._contexts for start, _, end in pattern.find_all(view.data))
        starts = [start for start, _ in spans]
        return [
            finding
            for finding in found
            if not (place := bisect_right(starts, finding.start)) or spans[place - 1][1] < finding.end
        ]

    def _find_by_rule(self, index: int, view: TextView, judgements: dict[Any, bool]) -> Iterator[SecretFinding]:
        rule = self._rules[index]
        for _, start, end in self._patterns[index].find_all(view.data, rule.group):
            end = _before_marker(view.text, start, end)
            if end > start and self._meets_requirements(index, view, start, end, judgements):
                candidate = _rule_candidate(rule, view, start, end) if rule.requires else None
                yield SecretFinding(start, end, rule.label, f"rule {rule.id}", 1 if rule.requires else 0, candidate)

    def _meets_requirements(self, index: int, view: TextView, start: int, end: int, judgements: dict[Any, bool]) -> bool:
        """Return whether a match meets the requirements of its rule."""
        rule, value = self._rules[index], view.text[start:end]
        if self._is_allowed(value) or (index in self._rule_allow and self._rule_allow[index].matches(value)):
            return False
        if rule.min_entropy and judge.entropy(value) < rule.min_entropy:
            return False
        if not rule.requires:
            return (len(value) < 16 or len(set(value[-16:])) > 2) and not judge.is_example_token(value)
        return self._is_secret(_rule_candidate(rule, view, start, end), judgements)

    def _is_allowed(self, value: str) -> bool:
        return value in self._allowed_values or self._allowed.matches(value)

    def _find_named(self, view: TextView, present: frozenset[int], judgements: dict[Any, bool]) -> list[SecretFinding]:
        found: list[SecretFinding] = []
        if self._keyvalue in present:
            found += self._judge_all(keyvalue.find_candidates(view), judgements)
        sentences = [
            self._sentences[index - self._first_sentence]
            for index in sorted(present)
            if self._first_sentence <= index < self._keyvalue
        ]
        if sentences:
            found += self._judge_all(prose.find_candidates(view, sentences), judgements, found)
        if self._nearby in present:
            found += self._judge_all(nearby.find_candidates(view), judgements, found)
        return found

    def _judge_all(
        self, candidates: Iterable[Candidate], judgements: dict[Any, bool], before: Iterable[SecretFinding] = ()
    ) -> Iterator[SecretFinding]:
        """Yield the candidates that are secrets, except for earlier findings."""
        done = {(finding.start, finding.end) for finding in before}
        for finding in candidates:
            if (finding.start, finding.end) in done:
                continue
            if (finding.is_sure or self._is_secret(finding, judgements)) and not self._is_allowed(finding.value):
                done.add((finding.start, finding.end))
                reason = f"name {finding.name}" if finding.source == "named" else finding.source
                yield SecretFinding(
                    finding.start, finding.end, finding.kind, reason, _RANKS.get(finding.source.partition("-")[0], 2), finding
                )

    def _is_secret(self, candidate: Candidate, judgements: dict[Any, bool]) -> bool:
        if judge.is_clearly_harmless(candidate):
            return False
        # All fields except the offsets.
        key = candidate[2:]
        if key not in judgements:
            judgements[key] = judge.is_secret(candidate) if len(judgements) < _MOST_JUDGED else judge.is_mixed(candidate.value)
        return judgements[key]

    def _find_encoded(self, view: TextView, judgements: dict[Any, bool]) -> Iterator[SecretFinding]:
        """Yield base64 blobs that decode to a text with a secret; one search covers all of them."""
        spans = [(start, end) for start, _, end in _BASE64.find_all(view.data)]
        texts = [_decode(view.data[start:end]) for start, end in spans]
        if not any(texts):
            return
        starts, position = [], 0
        for text in texts:
            starts.append(position)
            position += len(text) + len(_SEPARATOR)
        inner = normalize(_SEPARATOR.join(texts))
        present = self._keywords.present(inner.data) - {self._base64}
        rules = [index for index in present if index < self._first_sentence]
        found = [finding for index in rules for finding in self._find_by_rule(index, inner, judgements)]
        found += self._find_named(inner, present, judgements)
        kinds: dict[int, SecretFinding] = {}
        for finding in found:
            kinds.setdefault(bisect_right(starts, inner.span(finding.start, finding.end)[0]) - 1, finding)
        for index, finding in kinds.items():
            start, end = _extend_blob(view.text, *spans[index])
            yield SecretFinding(start, end, finding.kind, f"{finding.reason} in base64", finding.rank)

    def _find_wrapped(self, view: TextView, outer: TextView, judgements: dict[Any, bool]) -> list[SecretFinding]:
        """Return secrets that are split by a line break."""
        joined = join_lines(view)
        if joined is None:
            return []
        present = self._keywords.present(joined.data)
        rules = [index for index in present if index < self._first_sentence and index not in self._raw]
        found = [finding for index in rules for finding in self._find_by_rule(index, joined, judgements)]
        if self._keyvalue in present:
            found += self._judge_all(keyvalue.find_candidates(joined), judgements)
        if self._base64 in present:
            found += self._find_encoded(joined, judgements)
        crossing = [finding for finding in _to_origin(joined, found) if "\n" in view.text[finding.start : finding.end]]
        return crossing if view is outer else _to_origin(view, crossing)


def _containers(value: Any) -> list[Any]:
    """Return the objects and lists of a JSON value, outer ones first, without recursion."""
    order: list[Any] = []
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            order.append(node)
            stack.extend(item for item in node.values() if isinstance(item, dict | list | tuple))
        elif isinstance(node, list | tuple):
            order.append(node)
            stack.extend(item for item in node if isinstance(item, dict | list | tuple))
    return order


def _find_value_name(node: dict[Any, Any], key: Any) -> str:
    """Return the name of an object's value: its key, or the sibling `name` in `{"name": …, "value": …}`."""
    if key in ("value", "Value"):
        name = node.get("name", node.get("key", node.get("Name", node.get("Key"))))
        return name if isinstance(name, str) else "value"
    return key if isinstance(key, str) else ""


def _unique_key(key: str, *taken: dict[Any, Any]) -> str:
    """Return a redacted key, with a number if the key exists already."""
    name, number = key, 2
    while any(name in node for node in taken):
        name, number = f"{key}#{number}", number + 1
    return name


def _rule_candidate(rule: RedactionRule, view: TextView, start: int, end: int) -> Candidate:
    text = view.text
    name, after = text[max(0, start - 40) : start], text[end : end + 12]
    return keyvalue.candidate_at(text, start, end, rule.label, f"rule-{rule.requires}", name=name, after=after)


def _may_have_prefix(line: str) -> bool:
    return "**" in line or line[:1] in "><[⎿└├│┃ \tUuHhAaSsTt" or line.count(":") > 1


def _join_patterns(patterns: Sequence[str]) -> BytePattern:
    """Return a pattern that matches if any of several patterns matches."""
    return BytePattern("|".join(f"(?:{finding})" for finding in patterns))


def _to_origin(view: TextView, found: Iterable[SecretFinding]) -> list[SecretFinding]:
    if view.is_plain:
        return list(found)
    return [
        finding._replace(start=start, end=end) for finding in found for start, end in (view.span(finding.start, finding.end),)
    ]


def _before_marker(text: str, start: int, end: int) -> int:
    """Return the end of a match without a following marker; its start if it is inside a marker."""
    if text[max(0, start - 10) : start] == "[redacted:":
        return start
    marker = text.find("[redacted:", start, end)
    return end if marker < 0 else marker


def _extend_all(text: str, found: list[SecretFinding]) -> list[SecretFinding]:
    """Extend findings that continue on the next line; skip a finding inside another."""
    extended, reached = [], 0
    for finding in sorted(found, key=lambda finding: finding.start):
        if (
            finding.end > reached
            and text[finding.end : finding.end + 1] == "\n"
            and finding.end - finding.start > 5
            and _WRAPPABLE.match(text[finding.end - 1])
            and not text[finding.start : finding.end].isdigit()
        ):
            finding = finding._replace(end=wrapped_end(text, finding.end))
        reached = max(reached, finding.end)
        extended.append(finding)
    return extended


def _find_repeats(text: str, found: list[SecretFinding]) -> list[SecretFinding]:
    """Return other occurrences of the found values."""
    values: dict[str, SecretFinding] = {}
    for finding in found:
        value = text[finding.start : finding.end]
        if _SHORTEST_REPEAT <= len(value) <= _LONGEST_REPEAT and not value.isalpha() and not value.isdigit():
            values.setdefault(value, finding)
        if len(values) >= _MOST_REPEATS:
            break
    again = []
    for value, finding in values.items():
        place = text.find(value)
        while place >= 0:
            if place != finding.start:
                again.append(finding._replace(start=place, end=place + len(value)))
            place = text.find(value, place + len(value))
    return again


def _merge_findings(found: list[SecretFinding]) -> list[SecretFinding]:
    """Merge overlapping findings. The most certain finding determines the kind, then the longest."""
    found.sort(key=lambda finding: (finding.start, finding.rank, -finding.end))
    merged: list[SecretFinding] = []
    for finding in found:
        if not merged or finding.start >= merged[-1].end:
            merged.append(finding)
            continue
        last = merged[-1]
        best = finding if finding.rank < last.rank else last
        merged[-1] = best._replace(start=last.start, end=max(last.end, finding.end))
    return merged


def _replace(text: str, found: list[SecretFinding]) -> str:
    pieces, position = [], 0
    for finding in found:
        pieces += [text[position : finding.start], f"[redacted:{finding.kind}]"]
        position = finding.end
    return "".join([*pieces, text[position:]])


def _decode(blob: bytes) -> str:
    body = blob.rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    body = body[: len(body) - (len(body) % 4 == 1)]
    try:
        return a2b_base64(body + b"=" * (-len(body) % 4)).decode("latin-1")
    except Error:
        return ""


def _extend_blob(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range of the complete base64 text around a blob."""
    run = _BASE64_RUN.match(text, end)
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] in "+/_-") and text[start - 1].isascii():
        start -= 1
    return start, run.end() if run else end
