"""Convert OTLP messages between protobuf and the documents of OTLP's JSON encoding."""

import base64
from typing import Any

from decklog.core.errors import Invalid, TooLarge, Unavailable
from decklog.core.extras import install_hint

REQUEST, RESPONSE, STATUS = "ExportTraceServiceRequest", "ExportTraceServiceResponse", "Status"
# OTLP's JSON writes these in hexadecimal; protobuf's own JSON, as all other bytes, in base64.
_IDS = ("traceId", "spanId", "parentSpanId")
# Limits the number of messages: one of two bytes takes a hundred times the memory when decoded.
_MOST_MESSAGES = 1_000_000


def _message(name: str) -> Any:
    try:
        from google.rpc import status_pb2
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
    except ImportError:
        hint = f"{install_hint('otel')} JSON needs no library."
        raise Unavailable("the protobuf encoding of OTLP needs a library", hint=hint) from None
    return getattr(status_pb2 if name == STATUS else trace_service_pb2, name)()


def encoded(name: str, document: dict[str, Any]) -> bytes:
    """Encode a document as the message of this name; drop unknown fields."""
    message = _message(name)
    from google.protobuf.json_format import ParseDict, ParseError

    try:
        return bytes(ParseDict(_with_base64(document), message, ignore_unknown_fields=True).SerializeToString())
    except (ParseError, RecursionError) as problem:
        raise Invalid(f"it can't be written as {name}: {problem}") from None


def _with_base64(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _base64(bytes.fromhex(item)) if name in _IDS else _with_base64(item) for name, item in value.items()}
    return [_with_base64(item) for item in value] if isinstance(value, list) else value


def decoded(name: str, data: bytes) -> dict[str, Any]:
    """Decode a message; skip unknown fields, and raise for invalid bytes."""
    message = _message(name)
    from google.protobuf.message import DecodeError

    try:
        message.ParseFromString(data)
    except DecodeError as problem:
        raise Invalid(f"the message is no {name}: {problem}") from None
    return _document(message, [_MOST_MESSAGES])


def _document(message: Any, room: list[int]) -> dict[str, Any]:
    room[0] -= 1
    if room[0] < 0:
        raise TooLarge(f"the message holds more than {_MOST_MESSAGES} others")
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        name = field.json_name
        if field.message_type is None:
            found[name] = value if not isinstance(value, bytes) else value.hex() if name in _IDS else _base64(value)
        elif hasattr(value, "ListFields"):
            found[name] = _document(value, room)
        else:
            found[name] = [_document(one, room) for one in value]
    return found


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
