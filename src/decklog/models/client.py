"""The model client: one call with its limits, retries, charges and a checked answer in JSON."""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from decklog.core.display import DOLLAR
from decklog.core.errors import BudgetExceeded, DecklogError, NotFound
from decklog.journal.entry import EntryKind
from decklog.log import Decklog
from decklog.models.composer import Prompt, PromptPart
from decklog.models.provider import OUTAGES, PASSING, ModelReply, ModelRequest, Provider
from decklog.models.settings import ModelChoice, ModelSettings

LONGEST_ANSWER = 1024 * 1024
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
MOST_TRIES = 3
# The wait for a limit without a stated end; it doubles each time.
FIRST_WAIT_SECONDS = 2.0
LONGEST_TEXT = 20_000


class NotAnAnswer(ValueError):
    """The reply does not match the schema."""


def parse_answer(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Parse an answer: one JSON object of the schema, alone or in one fence, without other text."""
    if len(text) > LONGEST_ANSWER:
        raise NotAnAnswer(f"it is longer than {LONGEST_ANSWER} characters")
    stripped = text.strip()
    fenced = _FENCE.fullmatch(stripped)
    try:
        found = json.loads(fenced[1] if fenced else stripped, object_pairs_hook=_once, parse_constant=_refuse)
    except RecursionError:
        raise NotAnAnswer("it is nested too deeply") from None
    except NotAnAnswer:
        raise
    except ValueError as problem:
        raise NotAnAnswer(f"it is not JSON alone: {problem}") from None
    if not isinstance(found, dict):
        raise NotAnAnswer("it is no JSON object")
    fault = next(faults(found, schema), None)
    if fault is not None:
        raise NotAnAnswer(fault)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise NotAnAnswer("it has the same name twice in one object")
    return dict(pairs)


def _refuse(word: str) -> Any:
    raise NotAnAnswer(f"{word} is no JSON")


def faults(value: object, schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Yield the faults of a value by the part of JSON Schema that every provider supports."""
    where = place or "it"
    wanted = schema.get("type")
    if wanted is not None and not _is_a(value, wanted):
        yield f"{where} is no {wanted}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is {value!r:.60}, and not one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{where} is {value}, and goes from {schema.get('minimum')} to {schema.get('maximum')}"
    elif isinstance(value, list):
        yield from _list_faults(value, schema, where)
    elif isinstance(value, dict):
        yield from _object_faults(value, schema, place)


def _is_a(value: object, wanted: str | list[str]) -> bool:
    words = [wanted] if isinstance(wanted, str) else wanted
    # To Python a truth is a number.
    return any(isinstance(value, _TYPES[word]) and (word == "boolean" or not isinstance(value, bool)) for word in words)


def _list_faults(value: list[Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{where} has {len(value)} items, and at most {schema['maxItems']} were asked for"
    for number, one in enumerate(value):
        yield from faults(one, schema.get("items", {}), f"{where}[{number}]")


def _object_faults(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place or 'it'} lacks {name}"
    for name, one in value.items():
        if name in properties:
            yield from faults(one, properties[name], f"{place}.{name}" if place else name)
        elif schema.get("additionalProperties") is False:
            yield f"{place or 'it'} has {name!r:.60}, which was not asked for"


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """A call: its call site, its prompt, and the schema of its answer."""

    site: str
    prompt: Prompt
    schema: Mapping[str, Any]
    most_output_tokens: int = 1500
    # The provider's own where it is None.
    temperature: float | None = None


@dataclass(frozen=True, kw_only=True)
class ModelAnswer:
    """The answer to a call. Without `data` there is none, `why` is the reason, and what depends on it is unproven.

    `is_outage` marks an outage: the same call may be answered later.
    """

    site: str
    prompt_digest: str
    data: Mapping[str, Any] | None = None
    why: str = ""
    is_outage: bool = False
    model: str | None = None
    microdollars: int = 0
    entries: list[str] = field(default_factory=list)

    @property
    def is_given(self) -> bool:
        return self.data is not None


@dataclass(frozen=True)
class Models:
    """Asks models for one run, and for one task of it if there is one."""

    log: Decklog
    settings: ModelSettings
    make: Callable[[ModelChoice], Provider]
    run_id: str = field(kw_only=True)
    task_id: str | None = field(default=None, kw_only=True)
    wait: Callable[[float], None] = field(default=time.sleep, kw_only=True)

    def ask(self, call: ModelCall) -> ModelAnswer:
        """Ask the model of a call site. After an error the answer has a reason and no data."""
        choice = self.settings.choice_for(call.site)
        if choice is None:
            return ModelAnswer(site=call.site, prompt_digest=call.prompt.digest, why=f"no model is configured for {call.site}")
        asking = _Asking(self, call, choice)
        try:
            return asking.ask(self.make(choice))
        except BudgetExceeded as problem:
            return asking.answer(why=f"no money for {call.site}: {problem.message}")
        except DecklogError as problem:
            return asking.answer(why=f"{choice.name} can't be asked: {problem.message}")


class _Asking:
    """One call from its reservation to its record, with one repair and waits for outages."""

    def __init__(self, models: Models, call: ModelCall, choice: ModelChoice) -> None:
        self._log, self._run_id, self._task_id = models.log, models.run_id, models.task_id
        self._wait = models.wait
        self._call = call
        self._choice = choice
        self._id = self._log.parts.ids.new("call")
        self._number = 0
        self._microdollars = 0
        self._entries: list[str] = []
        self._deadline = time.monotonic() + choice.seconds

    def answer(self, model: str | None = None, **given: Any) -> ModelAnswer:
        """Build the answer, with what was spent and recorded so far."""
        return ModelAnswer(
            site=self._call.site,
            prompt_digest=self._call.prompt.digest,
            model=model or self._choice.model or self._choice.name,
            microdollars=self._microdollars,
            entries=self._entries,
            **given,
        )

    def ask(self, provider: Provider) -> ModelAnswer:
        """Ask until there is an answer, or a reason for which there is none."""
        reservation = self._reserve()
        try:
            reply = self._send(provider, self._call.prompt, reservation)
            data, problem = self._parse(reply)
            if problem:
                reply = self._send(provider, self._call.prompt.with_part(_repair(problem)), reservation)
                data, problem = self._parse(reply)
        finally:
            self._log.reservations.settle(reservation)
        name = self._choice.name
        if reply.error_class is not None:
            why, is_outage = f"{name} met {reply.error_class}: {reply.error}", reply.error_class in OUTAGES
            return self.answer(reply.model, why=why, is_outage=is_outage)
        return self.answer(reply.model, data=data, why=f"{name} gave no answer that can be read: {problem}" if problem else "")

    def _parse(self, reply: ModelReply) -> tuple[dict[str, Any] | None, str]:
        """Return the answer in a reply, and why it can't be parsed."""
        if reply.error_class is not None:
            return None, ""
        try:
            return parse_answer(reply.text, self._call.schema), ""
        except NotAnAnswer as problem:
            return None, str(problem)

    def _send(self, provider: Provider, prompt: Prompt, reservation: str) -> ModelReply:
        """Send a prompt; wait for outages that end within the time of the call."""
        wait = FIRST_WAIT_SECONDS
        for left in range(MOST_TRIES - 1, -1, -1):
            reply = self._try(provider, prompt, reservation)
            pause = reply.retry_seconds if reply.retry_seconds is not None else wait
            is_over_soon = reply.error_class in PASSING and time.monotonic() + pause < self._deadline
            if not left or not is_over_soon:
                return reply
            self._wait(pause)
            wait *= 2
        raise AssertionError("the last try is answered")

    def _try(self, provider: Provider, prompt: Prompt, reservation: str) -> ModelReply:
        self._number += 1
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            return ModelReply(error_class="timeout", error=f"{self._choice.seconds:g} seconds are over")
        request = ModelRequest(
            schema=self._call.schema,
            most_output_tokens=self._call.most_output_tokens,
            seconds=seconds,
            temperature=self._call.temperature,
        )
        reply = provider.reply(prompt, request)
        # In one transaction: a crash leaves both or neither.
        with self._log.transaction():
            self._charge(reply, reservation)
            self._record(prompt, reply)
        return reply

    # Money

    def _reserve(self) -> str:
        expires = self._log.clock.now() + timedelta(seconds=self._choice.seconds + 60)
        # For the call and one repair.
        tokens = 2 * (self._call.prompt.tokens + self._call.most_output_tokens)
        held = self._log.reservations.reserve(
            expires,
            amount_microdollars=self._estimate(),
            tokens=tokens,
            run_id=self._run_id,
            task_id=self._task_id,
            holder=self._call.site,
            key=self._id,
        )
        return held.id

    def _estimate(self) -> int:
        if self._choice.reserve_usd is not None:
            return round(self._choice.reserve_usd * DOLLAR)
        try:
            return 2 * self._log.prices.quote(
                self._choice.model, input_tokens=self._call.prompt.tokens, output_tokens=self._call.most_output_tokens
            )
        except NotFound:
            # Its price is unknown; tokens are reserved.
            return 0

    def _charge(self, reply: ModelReply, reservation: str) -> None:
        if not reply.usage:
            return
        figures: dict[str, Any] = dict(reply.usage)
        charge = self._log.ledger.charge(
            reply.model or self._choice.model or self._choice.name,
            **figures,
            run_id=self._run_id,
            task_id=self._task_id,
            call_site=self._call.site,
            reservation_id=reservation,
            enforce=False,
            key=f"{self._id}:{self._number}",
            answer_id=reply.answer_id,
        )
        self._microdollars += charge.cost_microdollars or 0

    # The record

    def _record(self, prompt: Prompt, reply: ModelReply) -> None:
        parts = [{"name": part.name, "digest": part.digest, "stable": part.is_stable} for part in prompt.parts]
        entry = self._log.journal.append(
            self._run_id,
            (reply.text or reply.error)[:LONGEST_TEXT],
            kind=EntryKind.INTERACTION,
            subtype="model.call",
            task_id=self._task_id,
            payload={
                "call_site": self._call.site,
                "model": reply.model or self._choice.model or self._choice.name,
                "prompt": prompt.digest,
                "parts": parts,
                "answer": hashlib.sha256(reply.text.encode(errors="surrogatepass")).hexdigest(),
                "error": reply.error_class,
                "usage": dict(reply.usage),
            },
            key=f"{self._id}:{self._number}",
        )
        self._entries.append(entry.id)


def _repair(problem: str) -> PromptPart:
    text = f"Your answer was not accepted: {problem}. Give it again as one JSON object of the form asked for, and nothing else."
    return PromptPart("repair", text)
