"""The first steps of a fix: classify the feedback, locate it in the base, plan the change, and get large plans approved."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from decklog.fixes.context import FixContext, answer_merge_question, ask_about_plan, withdraw_plan_question
from decklog.fixes.fixing import end_fix_run
from decklog.guard.files.gitignore import IgnoreFile
from decklog.models.client import ModelAnswer
from decklog.stores.approvals.feedback import FeedbackState, FixClass
from decklog.stores.workflow.mends import Mend, MendState, MendWait

MIN_CONFIDENCE = 60
SITE = "mend.triage"
_MOST_FILES = 2000
_MOST_LESSONS = 5
_LONGEST = 2000
_TEXTS = ("root_cause", "proposed_change", "test_sketch", "success_criterion")
_CANDIDATE = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "why": {"type": "string"}},
    "required": ["path", "why"],
    "additionalProperties": False,
}
FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "fix_class": {"type": "string", "enum": [one.value for one in FixClass]},
        **{name: {"type": "string"} for name in _TEXTS},
        "candidate_files": {"type": "array", "items": _CANDIDATE, "maxItems": 5},
        "prior_pattern": {"type": ["string", "null"]},
        "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
    },
    "required": ["fix_class", *_TEXTS, "candidate_files", "confidence"],
    "additionalProperties": False,
}
MOST_WORDS, SHORTEST_WORD, MOST_HITS, MOST_FILES = 5, 4, 20, 5
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACE = re.compile(r"^(?P<path>.+?)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?$")
_NAMED = re.compile(r"(?<![\w/.-])([\w.-]+(?:/[\w.-]+)*\.\w+(?::\d+(?:-\d+)?)?)")
_LONGEST_LINE = 200
AROUND, LEAST_LINES = 5, 10
_ALWAYS_LARGE = (FixClass.ARCHITECTURAL, FixClass.STATE_MACHINE)
_CRITERION = "a test that fails without the fix by an assertion passes with it, and the problem no longer happens"


def drop(context: FixContext, reason: str, *, by: str = "mend", **changes: Any) -> Mend:
    """Drop a fix with a reason. Reject its feedback with the same reason unless it was verified."""
    log, mend = context.log, context.mend
    with log.transaction():
        feedback = context.feedback
        if feedback.state is FeedbackState.PENDING:
            feedback = log.feedback.triage(feedback.id, FixClass.OUT_OF_SCOPE, by=by, note=reason)
        if feedback.state in (FeedbackState.TRIAGED, FeedbackState.IN_FIX, FeedbackState.FIX_PR_OPEN):
            log.feedback.reject(feedback.id, reason, by=by)
        withdraw_plan_question(context, reason)
        end_fix_run(context, f"dropped: {reason}")
        answer_merge_question(context, f"given up: {reason}")
        dropped = log.mends.move(mend, MendState.DROPPED, reason=reason, **changes)
        log.runs.finish(mend.run_id, status="cancelled", summary=f"dropped: {reason}"[:500])
    return dropped


def triage(context: FixContext) -> Mend:
    """Classify the feedback by a model, unless a person has classified it."""
    feedback, mend, log = context.feedback, context.mend, context.log
    if feedback.state in (FeedbackState.REJECTED, FeedbackState.CLOSED, FeedbackState.VERIFIED):
        return drop(context, f"feedback {feedback.id} is {feedback.state} already")
    if feedback.state is not FeedbackState.PENDING:
        facts = {"by": "a person", "root_cause": feedback.root_cause or "", "success_criterion": feedback.success_criterion or ""}
        return log.mends.move(mend, MendState.TRIAGED, fix_class=feedback.fix_class, triage=facts)
    answer = _ask_model(context)
    if answer.data is None:
        waits = MendWait.WEATHER if answer.is_outage else MendWait.MODEL
        return log.mends.move(mend, waits_for=waits, reason=f"the kind of fix is unknown: {answer.why}")
    return _apply_answer(context, answer.data, answer.model or "a model")


def set_class(context: FixContext, fix_class: FixClass, *, by: str) -> Mend:
    """Record the class that a person has chosen."""
    log, mend = context.log, context.mend
    if fix_class is FixClass.OUT_OF_SCOPE:
        return drop(context, f"{by} decided that it is out of scope")
    with log.transaction():
        if context.feedback.state is FeedbackState.PENDING:
            log.feedback.triage(mend.feedback_id, fix_class, by=by)
        return log.mends.move(mend, MendState.TRIAGED, fix_class=fix_class, triage={"by": by})


def _ask_model(context: FixContext) -> ModelAnswer:
    feedback = context.feedback
    listed = context.repository.on_objects("ls-tree", "-r", "-z", "--name-only", context.base).out.split(b"\0")
    files = [name.decode(errors="replace") for name in listed if name][:_MOST_FILES]
    lessons = context.log.memory.recall(feedback.body[:_LONGEST], topic="failure_patterns", limit=_MOST_LESSONS)
    data = [
        ("feedback", feedback.body),
        ("severity", feedback.severity.value),
        ("files", "\n".join(files)),
        ("earlier", "\n".join(f"- {hit.body} (lesson {hit.id}, {hit.confidence} of 100)" for hit in lessons)),
    ]
    given = [(name, text) for name, text in data if text]
    return context.models.ask(context.log, SITE, FORM, given, run_id=context.mend.run_id)


def _apply_answer(context: FixContext, data: Mapping[str, Any], by: str) -> Mend:
    """Apply the model's classification. Drop the fix if it is uncertain or out of scope."""
    log, mend = context.log, context.mend
    confidence, fix_class = int(data["confidence"]), FixClass(data["fix_class"])
    facts = {**{name: str(data[name])[:_LONGEST] for name in _TEXTS}, "candidate_files": data["candidate_files"], "by": by}
    if confidence < MIN_CONFIDENCE or fix_class is FixClass.OUT_OF_SCOPE:
        unsure = f"{by} classified it as {fix_class} with confidence {confidence}, below {MIN_CONFIDENCE}"
        reason = unsure if confidence < MIN_CONFIDENCE else f"{by} decided that it is out of scope: {facts['root_cause']}"
        return drop(context, reason, confidence=confidence, triage={**facts, "fix_class": fix_class.value})
    with log.transaction():
        words = {"root_cause": facts["root_cause"], "success_criterion": facts["success_criterion"]}
        log.feedback.triage(mend.feedback_id, fix_class, by=by, **words)
        return log.mends.move(mend, MendState.TRIAGED, fix_class=fix_class, confidence=confidence, triage=facts)


@dataclass(frozen=True)
class Spot:
    """Lines of one file of the base, and why they matter."""

    path: str
    first: int
    last: int
    text: str
    why: str


def locate(context: FixContext) -> Mend:
    """Locate the feedback in the base: by the places that it names, or else by a search for its words."""
    spots = list(_find_named_spots(context)) or _search_spots(context)
    return context.log.mends.move(context.mend, MendState.LOCATED, places=[asdict(one) for one in spots[:MOST_HITS]])


def longest_words(text: str) -> list[str]:
    """Return the longest distinct words of a text."""
    found = dict.fromkeys(word for word in _WORD.findall(text) if len(word) >= SHORTEST_WORD)
    return sorted(found, key=lambda word: (-len(word), word))[:MOST_WORDS]


def _candidates(context: FixContext) -> list[tuple[re.Match[str], str]]:
    """List the places that triage names, each with the reason."""
    named: Any = context.mend.triage.get("candidate_files")
    rows = [(_PLACE.match(str(one["path"])), str(one["why"])) for one in named or ()]
    return [(place, why[:_LONGEST_LINE]) for place, why in rows if place is not None]


def _find_named_spots(context: FixContext) -> Iterator[Spot]:
    """Yield the places in the base that triage or the feedback names."""
    by_words = [(place, "it is named") for name in _NAMED.findall(context.feedback.body) if (place := _PLACE.match(name))]
    seen: set[str] = set()
    for place, why in (*_candidates(context), *by_words):
        path = place["path"]
        content = context.repository.read(context.base, path) if path not in seen else None
        if content is not None:
            seen.add(path)
            yield from _lines_of(context, path, content, place["first"], place["last"], why)


def find_missing_files(context: FixContext) -> list[str]:
    """Return the files that triage names but the base does not have."""
    paths = dict.fromkeys(place["path"] for place, _ in _candidates(context))
    return [path for path in paths if context.repository.read(context.base, path) is None]


def _lines_of(context: FixContext, path: str, content: bytes, first: str | None, last: str | None, why: str) -> Iterator[Spot]:
    lines = content.decode(errors="replace").split("\n")
    if first is not None:
        start = min(int(first), len(lines))
        end = min(int(last or first), len(lines))
        yield Spot(path, start, max(start, end), lines[start - 1][:_LONGEST_LINE], why)
        return
    words = [word.lower() for word in longest_words(context.feedback.body)]
    hits = [number for number, line in enumerate(lines, 1) if any(word in line.lower() for word in words)]
    for number in hits[:MOST_FILES] or [1]:
        yield Spot(path, number, number, lines[number - 1][:_LONGEST_LINE], why)


def _search_spots(context: FixContext) -> list[Spot]:
    """Search the base for the words of the feedback. Files with the most words come first, tests last."""
    words = longest_words(context.feedback.body)
    if not words:
        return []
    asked = [part for word in words for part in ("-e", word)]
    grep = ("grep", "-n", "-z", "-I", "-i", "-F", "--full-name", *asked, context.base)
    raw = context.repository.on_objects(*grep, accepted=(0, 1)).out
    hits = [spot for line in raw.split(b"\n") if (spot := _parse_hit(line, context.base, words)) is not None]
    tests = IgnoreFile(context.settings.tests)
    score = {one.path: (tests.covers(one.path), -len(_words_in(hits, one.path, words)), one.path) for one in hits}
    best = sorted(score, key=lambda path: score[path])[:MOST_FILES]
    return [one for path in best for one in hits if one.path == path]


def _parse_hit(line: bytes, base: str, words: list[str]) -> Spot | None:
    parts = line.split(b"\0")
    if len(parts) != 3 or not parts[1].isdigit():
        return None
    path = parts[0].decode(errors="surrogateescape").removeprefix(f"{base}:")
    text = parts[2].decode(errors="replace")[:_LONGEST_LINE]
    found = [word for word in words if word.lower() in text.lower()]
    return Spot(path, int(parts[1]), int(parts[1]), text, f"has {', '.join(found)}")


def _words_in(hits: list[Spot], path: str, words: list[str]) -> set[str]:
    return {word for one in hits if one.path == path for word in words if word.lower() in one.text.lower()}


def plan(context: FixContext) -> Mend:
    """Record the plan, and ask a person about a large one."""
    log, mend = context.log, context.mend
    document = _build_plan(context)
    if not document["large"] or mend.branch is not None:
        return log.mends.move(mend, MendState.PLANNED, plan=document)
    with log.transaction():
        asked = ask_about_plan(context, document)
        return log.mends.move(
            mend,
            MendState.PLANNED,
            plan={**document, "approval": asked.id, "digest": asked.subject_digest},
            waits_for=MendWait.APPROVAL,
            reason=f"the plan is large: {document['large']}",
        )


def approve(context: FixContext) -> Mend:
    """Begin the fix. An agent's large plan needs an approval, which is used up."""
    log, mend = context.log, context.mend
    approval = mend.plan.get("approval")
    with log.transaction():
        is_asked = approval is not None and mend.branch is None
        if is_asked and log.approvals.use(mend.run_id, str(mend.plan["digest"])) is None:
            return _wait_for_approval(context, str(approval))
        if mend.branch is not None:
            withdraw_plan_question(context, f"a person fixes it: {mend.branch}")
        if context.feedback.state is FeedbackState.TRIAGED:
            log.feedback.start_fix(mend.feedback_id, by="mend", note=f"mend {mend.id}")
        return log.mends.move(mend, MendState.FIXING)


def _wait_for_approval(context: FixContext, approval: str) -> Mend:
    found = context.log.approvals.get(approval)
    if found.state.value in ("denied", "expired"):
        return drop(context, f"the plan was not approved: {found.rationale or found.state}")
    if context.mend.waits_for is MendWait.APPROVAL:
        return context.mend
    return context.log.mends.move(context.mend, waits_for=MendWait.APPROVAL, reason=f"approval {approval} is {found.state}")


def _build_plan(context: FixContext) -> dict[str, Any]:
    mend, feedback, triage = context.mend, context.feedback, context.mend.triage
    files = _files(context)
    estimate = sum(files.values())
    return {
        "task": feedback.body.strip().split("\n", 1)[0][:200],
        "fix_class": mend.fix_class,
        "root_cause": triage.get("root_cause") or "not known yet",
        "approach": triage.get("proposed_change") or "fix the located places",
        "test": triage.get("test_sketch") or "a test of the reported problem, which fails without the fix",
        "success_criterion": triage.get("success_criterion") or _CRITERION,
        "files": [{"path": path, "lines": lines} for path, lines in files.items()],
        "missing": find_missing_files(context),
        "lines": estimate,
        "alternatives": ["drop it with a reason: decklog mend drop", "fix it by hand: decklog mend --branch"],
        "cost": f"at most {context.rules.rounds} rounds of an agent and their reviews, at a price that is not known yet",
        "risks": "other code that uses these files; its tests are run too",
        "large": _why_large(context, files, estimate),
    }


def _files(context: FixContext) -> dict[str, int]:
    """Estimate the changed lines of each file: the located lines and a few around them."""
    found: dict[str, int] = {}
    for spot in context.mend.places:
        assert isinstance(spot, dict)
        span = int(spot["last"]) - int(spot["first"]) + 1
        found[str(spot["path"])] = found.get(str(spot["path"]), 0) + span + AROUND
    return {path: max(lines, LEAST_LINES) for path, lines in found.items()}


def _why_large(context: FixContext, files: dict[str, int], estimate: int) -> str:
    """Return why a plan is large; empty if it is not. Only files that triage named count as components."""
    if context.mend.fix_class in _ALWAYS_LARGE:
        return f"it is {context.mend.fix_class}"
    if estimate > context.rules.large:
        return f"about {estimate} lines, limit {context.rules.large}"
    if not context.mend.triage.get("candidate_files"):
        return ""
    tests = IgnoreFile(context.settings.tests)
    folders = sorted({posixpath.dirname(path) for path in files if not tests.covers(path)})
    apart = [(one, other) for one in folders for other in folders if one < other and not _is_within(one, other)]
    return f"it is in two components, {apart[0][0]} and {apart[0][1]}" if apart else ""


def _is_within(one: str, other: str) -> bool:
    """Return whether one of two folders contains the other, which makes them one component."""
    return one == "" or f"{other}/".startswith(f"{one}/") or f"{one}/".startswith(f"{other}/")
