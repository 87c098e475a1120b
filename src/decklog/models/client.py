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
from decklog.models.provider import OUTAGES, TRANSIENT, ModelReply, ModelRequest, Provider
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


class InvalidAnswer(ValueError):
    """A reply that does not match the schema of its call."""


def parse_answer(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Parse an answer: one JSON object of the schema, alone or in one code fence."""
    if len(text) > LONGEST_ANSWER:
        raise InvalidAnswer(f"it is longer than {LONGEST_ANSWER} characters")
    stripped = text.strip()
    fenced = _FENCE.fullmatch(stripped)
    try:
        found = json.loads(fenced[1] if fenced else stripped, object_pairs_hook=_reject_duplicates, parse_constant=_refuse)
    except RecursionError:
        raise InvalidAnswer("it is nested too deeply") from None
    except InvalidAnswer:
        raise
    except ValueError as problem:
        raise InvalidAnswer(f"it is not JSON alone: {problem}") from None
    if not isinstance(found, dict):
        raise InvalidAnswer("it is not a JSON object")
    fault = next(find_schema_faults(found, schema), None)
    if fault is not None:
        raise InvalidAnswer(fault)
    return found


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise InvalidAnswer("it has the same name twice in one object")
    return dict(pairs)


def _refuse(word: str) -> Any:
    raise InvalidAnswer(f"{word} is not valid JSON")


def find_schema_faults(value: object, schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Yield the find_schema_faults of a value using the part of JSON Schema that all providers support."""
    where = place or "it"
    wanted = schema.get("type")
    if wanted is not None and not _is_a(value, wanted):
        yield f"{where} is not of type {wanted}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is {value!r:.60}; it must be one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            yield f"{where} is {value}; it must be from {schema.get('minimum')} to {schema.get('maximum')}"
    elif isinstance(value, list):
        yield from _find_list_faults(value, schema, where)
    elif isinstance(value, dict):
        yield from _find_object_faults(value, schema, place)


def _is_a(value: object, wanted: str | list[str]) -> bool:
    words = [wanted] if isinstance(wanted, str) else wanted
    # In Python a bool is an int.
    return any(isinstance(value, _TYPES[word]) and (word == "boolean" or not isinstance(value, bool)) for word in words)


def _find_list_faults(value: list[Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if len(value) > schema.get("maxItems", len(value)):
        yield f"{where} has {len(value)} items; at most {schema['maxItems']} are allowed"
    for number, one in enumerate(value):
        yield from find_schema_faults(one, schema.get("items", {}), f"{where}[{number}]")


def _find_object_faults(value: dict[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place or 'it'} lacks {name}"
    for name, one in value.items():
        if name in properties:
            yield from find_schema_faults(one, properties[name], f"{place}.{name}" if place else name)
        elif schema.get("additionalProperties") is False:
            yield f"{place or 'it'} has the unknown name {name!r:.60}"


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """A call of a model: its call site, prompt, and the schema of its answer."""

    site: str
    prompt: Prompt
    schema: Mapping[str, Any]
    most_output_tokens: int = 1500
    # None uses the provider's default.
    temperature: float | None = None


@dataclass(frozen=True, kw_only=True)
class ModelAnswer:
    """The answer to a call. Without an answer `data` is None and `why` gives the reason.

    With `is_outage` the same call may be answered later.
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
class ModelClient:
    """Calls models for one run, and for one of its tasks if given."""

    log: Decklog
    settings: ModelSettings
    make: Callable[[ModelChoice], Provider]
    run_id: str = field(kw_only=True)
    task_id: str | None = field(default=None, kw_only=True)
    wait: Callable[[float], None] = field(default=time.sleep, kw_only=True)

    def ask(self, call: ModelCall) -> ModelAnswer:
        """Ask the model of a call site. After an error the answer has a reason instead of data."""
        choice = self.settings.choice_for(call.site)
        if choice is None:
            return ModelAnswer(site=call.site, prompt_digest=call.prompt.digest, why=f"no model is configured for {call.site}")
        asking = _CallAttempt(self, call, choice)
        try:
            return asking.ask(self.make(choice))
        except BudgetExceeded as problem:
            return asking.answer(why=f"no budget for {call.site}: {problem.message}")
        except DecklogError as problem:
            return asking.answer(why=f"{choice.name} can't be asked: {problem.message}")


class _CallAttempt:
    """One call, from its reservation to its record, with one repair and retries after short outages."""

    def __init__(self, models: ModelClient, call: ModelCall, choice: ModelChoice) -> None:
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
        """Build the answer, with the cost and the entries so far."""
        return ModelAnswer(
            site=self._call.site,
            prompt_digest=self._call.prompt.digest,
            model=model or self._choice.model or self._choice.name,
            microdollars=self._microdollars,
            entries=self._entries,
            **given,
        )

    def ask(self, provider: Provider) -> ModelAnswer:
        """Ask until there is an answer or a reason why there is none."""
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
            why, is_outage = f"{name} failed with {reply.error_class}: {reply.error}", reply.error_class in OUTAGES
            return self.answer(reply.model, why=why, is_outage=is_outage)
        return self.answer(reply.model, data=data, why=f"the answer of {name} can't be parsed: {problem}" if problem else "")

    def _parse(self, reply: ModelReply) -> tuple[dict[str, Any] | None, str]:
        """Return the answer in a reply, or why it can't be parsed."""
        if reply.error_class is not None:
            return None, ""
        try:
            return parse_answer(reply.text, self._call.schema), ""
        except InvalidAnswer as problem:
            return None, str(problem)

    def _send(self, provider: Provider, prompt: Prompt, reservation: str) -> ModelReply:
        """Send a prompt; retry after outages that end within the time limit of the call."""
        wait = FIRST_WAIT_SECONDS
        for left in range(MOST_TRIES - 1, -1, -1):
            reply = self._try(provider, prompt, reservation)
            pause = reply.retry_seconds if reply.retry_seconds is not None else wait
            is_over_soon = reply.error_class in TRANSIENT and time.monotonic() + pause < self._deadline
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
        # Reserve for the call and one repair.
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
            # The price is unknown, so only tokens are reserved.
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
    text = f"Your answer was not accepted: {problem}. Answer again with one JSON object of the requested form and nothing else."
    return PromptPart("repair", text)
