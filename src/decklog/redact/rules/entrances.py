"""Codes by which one gets in somewhere: doors, safes, alarms, and those that are sent to somebody's phone."""

from decklog.redact.rules.rule import Rule, rule

_PLACES = (
    r"(?:safe|alarm\w{0,2}|doors?|gates?|locker|keypad|tresor|cassaforte|coffre(?:-fort)?|caja fuerte|sejfu?|garage|parking)"
)
_PLACE_WORDS = "safe alarm door gate locker keypad tresor cassaforte coffre fuerte sejf garage parking"
_CODES = r"(?:code|kod|codice|c[\xf3o]digo|combination|kombination|combinaison|combinazione)"
# No part of another number, a time or a name.
_END = r"(?:[^\w.:/-]|\.(?:[\s\"'<)*\\]|$)|$)"

ENTRANCES: tuple[Rule, ...] = (
    rule(
        "code",
        _PLACE_WORDS,
        r"(?:\d{4,8}|\d\d-\d\d-\d\d)",
        keep=rf"(?i:\b{_PLACES}\b[^\n]{{0,80}}?\b(?:{_CODES}|opens? with|enter)\b[^\n\d]{{0,40}}?[ \t:])",
        until=_END,
    ),
    rule(
        "code",
        _PLACE_WORDS,
        r"(?:\d{4,8}|\d\d-\d\d-\d\d)",
        keep=rf"(?i:\b{_CODES}\b[^\n\d:=]{{1,24}}\b{_PLACES}\b[^\n\d]{{0,40}}?[ \t:])",
        until=_END,
    ),
    rule(
        "code",
        "code",
        r"\d{4,8}",
        keep=r"(?i:\b(?:your|my|sms|message|text),?[ \t]+code[ \t]+(?:is|was)[ \t]*:?[ \t]*)",
        until=r"(?:[.,;!?)\"'\\\s]|$)",
    ),
    # What a line of a talk begins with.
    rule(
        "code",
        "code",
        r"\d{4,8}",
        keep=r"(?m:^|[:>,.!][ \t])[ \t]*(?i:(?:der|the|le|il|el|my|your)?[ \t]*code[ \t]+(?:is|ist|est|lautet|es|\xe8)[ \t]+)",
        until=r"(?:[.,;!?)\"'\\\s]|$)",
        glued=True,
    ),
    rule(
        "code",
        "code",
        r"\d{4,8}",
        keep=r"(?i:\b(?:verification|otp|sms|login|auth|2fa|mfa|confirmation|one_?time)_?code\"[ \t]*:[ \t]*\"?)",
        until=r"[\",}\s]",
    ),
    rule(
        "code",
        "alarm_control_panel",
        r"\d{4,8}",
        keep=r"alarm_control_panel:[ \t]*\n(?:[ \t-][^\n]*\n){0,8}[ \t-]*code:[ \t]*[\"']?",
        until=r"[\"'\s]",
        glued=True,
    ),
    # What somebody is to get in by this once.
    rule(
        "code",
        "use enter type",
        r"\d{4,8}",
        keep=r"(?i:\b(?:use|enter|type)[ \t]+(?:(?:the|this|your)[ \t]+)?"
        r"(?:(?:one-?time|verification|security|sign-?in|login)[ \t]+)?(?:code[ \t]+)?)",
        until=r"[ \t]+(?i:to (?:(?:sign|log) in|confirm your|authenticate))",
    ),
    rule("code", "passcode", r"\d{4,10}", keep=r"(?i:\bpasscode[ \t]+)", until=_END),
)
