"""The ways of telling a secret that are asked for after all others, whose openings are longer than these."""

from decklog.redact.sentences import checks
from decklog.redact.sentences.telling import END, KEYS, NAMED, ODD_VALUE, QUOTE, VALUE, Telling

_LOOSE: tuple[Telling, ...] = (
    Telling(
        "pin",
        "puk",
        " \t:=-c",
        r"(?:[ -]?code)?"
        r"(?:[ \t]+(?:for|of|on)[ \t][^\n:=\"]{1,60}?(?:[ \t]*[:=]|[ \t]+is)|[ \t]*(?:[:=]|(?:is|was|ist|est)\b)?)"
        rf"[ \t]*{QUOTE}(\d{{6,8}}){END}",
        checks.is_any,
    ),
    Telling("told-password", "sa is now", " \t:", rf"[ \t:]+{QUOTE}{VALUE}", checks.is_coined),
    Telling("told-password", "root|admin|administrator", " \t", rf"[ \t]+is[ \t]+now[ \t:]+{QUOTE}{VALUE}", checks.is_coined),
    Telling(
        "told-password",
        r"reset [\w.'-]{1,24} (?:account|login)",
        " \t",
        rf"[ \t]*(?:->|=>|\?|to)[ \t]*{QUOTE}{VALUE}",
        checks.is_coined,
    ),
    Telling(
        "told-password",
        "(?:log|sign)(?:s|ged|ging)?[ -]?[io]n",
        " \t",
        rf"[ \t]+(?:with|using)[ \t]+{QUOTE}{VALUE}",
        checks.is_coined,
    ),
    Telling("told-password", "basic auth", " \t(:", rf"[ \t(:]+[\w.@-]{{1,40}}:{VALUE}", checks.is_pair),
    Telling(
        "network-password",
        "wi-?fi|wlan",
        " \t",
        r"[ \t][^\n:=\"']{1,40}?[ \t]to[ \t]+[\"']([^\"'\n]{8,64})[\"']",
        checks.is_set_phrase,
    ),
    Telling(
        "token",
        "key for",
        " \t",
        r"[ \t]+[^\n:=\"]{1,48}?(?:[ \t]*:|[ \t]+is)[ \t]+[\"'`]?([\w.~+/=-]{20,})",
        checks.is_drawn_key,
    ),
    Telling(
        "code",
        "(?:2fa|mfa|otp|sms|login|verification|security) code",
        "?",
        rf"\?[ \t]+it(?:'s| is)[ \t]+(\d{{4,8}}){END}",
        checks.is_any,
    ),
    # What a word for one is said of, in brackets behind it or behind where it was found.
    Telling(
        "token",
        f"{KEYS}|(?:api|access|auth|bearer|deploy|refresh|session)[ _-]tokens?",
        " \t",
        r"(?:[ \t]+(?:in|for|of|from|at)[ \t]+\S{1,60})?[ \t]*\([\"'`]?([\w.~+/=-]{20,})[\"'`]?\)",
        checks.is_drawn_key,
    ),
    Telling(
        "code",
        "(?:backup|recovery|rescue) codes?",
        ",",
        r",[^\n:]{1,60}:[ \t]+([A-Za-z0-9]{3,6}(?:-[A-Za-z0-9]{3,6}){1,4})(?:[^\w-]|$)",
        checks.is_any,
    ),
    Telling(
        "pin",
        "code pin",
        " \t",
        rf"[ \t]+(?:de|du|des|del|della|von|vom|der|do|da)[ \t][^\n:=\"\d]{{1,40}}?[ \t]*[: \t][ \t]*(\d{{4,8}}){END}",
        checks.is_any,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t",
        r"[ \t]+[\"'?\x93\xab]([^\"'?\x94\xbb\n]{8,64})[\"'?\x94\xbb](?:[\s,;.)]|$)",
        checks.is_bare_phrase,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t,",
        r"(?:(?:[ \t]+[a-z][\w.-]*){0,6}[ \t]+to|,[ \t]+it(?:'s| is)(?:[ \t]+now)?)[ \t]+[\"']([^\"'\n]{8,64})[\"']",
        checks.is_odd_phrase,
    ),
    Telling(
        "connection-password",
        r"login\(|log_in\(|sign_?in\(|authenticate\(|connect\(",
        "",
        r"[ \t]*(?:(?:[\w.$]{1,64}|\"[^\"\n]{1,64}\"|'[^'\n]{1,64}'),[ \t]*){1,3}[\"']([^\"'\n]{8,64})[\"']",
        checks.is_odd_phrase,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t,",
        r"(?:,?[ \t]+[A-Za-z']+){1,10},?(?:[ \t]+[a-z]+){0,3}:[ \t]*[\"?\x93\xab]([^\"?\x94\xbb\n]{8,64})[\"?\x94\xbb]",
        checks.is_bare_phrase,
    ),
    Telling(
        "pin",
        "pin",
        " \t,",
        rf"(?:[ \t]+[a-z']{{1,12}}){{0,5}},[ \t]+(?:it'?s|it is|now|now it'?s)[ \t]+(\d{{4,8}}){END}",
        checks.is_any,
    ),
    Telling(
        "token",
        "use (?:this|the|my|our) (?:api )?key",
        " \t:",
        r"[^\n:\"`]{0,60}:[ \t]*[\"'`]?([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})",
        checks.is_any,
    ),
    Telling(
        "told-password",
        "passphrase",
        " \t",
        r"[ \t]+([a-z]{3,}(?: [a-z]{3,}){3,7}?)[ \t]+(?:at|when|if|to|and|for)\b",
        checks.is_typed_phrase,
    ),
    Telling("told-password", "root|admin|administrator", "/", r"/([^\s\"'`,<>/:]{8,64})", checks.is_slashed),
    Telling("told-password", NAMED, ".,", r"[.,][ \t]+[iI]t'?s[ \t]+([a-z]{4}(?: [a-z]{4}){3})(?:[^\w]|$)", checks.is_in_fours),
    Telling("told-password", NAMED, ":", rf":[ \t]*\.{{2,40}}[ \t]*{VALUE}", checks.is_said),
    Telling("told-password", NAMED, "?", rf"\?[ \t]+{QUOTE}([^\s\"'`,<>()]{{6,64}})", checks.is_chosen),
    Telling("told-password", NAMED, " \t", r"[ \t]+\?[ \t]+([^\s\"'`]{6,64})[ \t]+\?", checks.is_drawn),
    Telling(
        "told-password",
        NAMED,
        " \t",
        r"[ \t]+(?:for|of)[ \t]+(?:[\"'`]?[\w.-]{1,40}[\"'`]?@[\"'`]?[\w.%-]{1,60}[\"'`]?|[^\n:=\"'`(]{1,48}\([^()\n]{1,100}\))"
        r"(?:[ \t]*[:=]|[ \t]+is)[ \t]*"
        r"([^\s\"'`]{6,64})",
        checks.is_asked_for,
    ),
    Telling(
        "token",
        KEYS,
        " \t",
        r"(?:[ \t]+[A-Za-z]+){0,8}[ \t]+(?:as|named|called|under)[ \t]+[\"'`]?[A-Z][A-Z0-9_]{2,40}[\"'`]?[ \t]*"
        r"(?:[?:=]|->|=>)[ \t]*[\"'`]?([\w.~+/=-]{16,})",
        checks.is_former_key,
    ),
    Telling(
        "network-password",
        "wi-?fi|wlan",
        " \t:",
        r"[^\n]{1,60}?\bkey[ \t:=]+(?:(?:is|was)[ \t]+)?[\"'`]?([a-z]{3,12}(?:[-_.][a-z]{3,12}){3,7})",
        checks.is_words,
    ),
)
# What was rotated is told by what it is now, and what a variable is set to.
_ROTATED: tuple[Telling, ...] = (
    Telling(
        "token",
        "(?:new|old|other) one",
        " \t:",
        r"(?:[ \t]*[:=]|[ \t]+(?:is|was))[ \t:]+[\"'`]?([\w.~+/=-]{16,})",
        checks.is_mixed,
    ),
    Telling(
        "told-password",
        "[a-z][a-z0-9]{1,15}_(?:password|passwd|pwd|pass)",
        " \t",
        rf"[ \t]+(?:(?:is|was)[ \t]+)?(?:set|changed)[ \t]+to[ \t:]+{QUOTE}{VALUE}",
        checks.is_set_to,
    ),
    Telling(
        "token",
        "(?:old|current|live|prod|production|staging|shared|leaked|real|former|previous) key",
        " \t:",
        r"(?:[ \t]+[A-Za-z']+){0,6}(?:[ \t]*:|[ \t]+(?:is|was):?)[ \t]+[\"'`]?"
        r"([\w.~+/=-]{20,})",
        checks.is_drawn_key,
    ),
    Telling(
        "token",
        "(?:my|your|our) key",
        " \t",
        r"[ \t]+[\"'(*`]{0,3}([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{48}|[0-9a-f]{64})(?:[^\w-]|$)",
        checks.is_hex_key,
    ),
)
# After all others, too: what a network is got into by.
_NETWORKS: tuple[Telling, ...] = (
    Telling("network-password", "wi-?fi|wlan", " \t", rf"[ \t]+(?:is|ist|est|es)[ \t:]+{QUOTE}{VALUE}", checks.is_coined),
    Telling(
        "network-password",
        "wi-?fi|wlan",
        " \t:",
        rf"[^\n]{{1,60}}?[,;][ \t]*(?:key|pass\w{{0,6}}|pw|code)[ \t:=]+{QUOTE}{VALUE}",
        checks.is_network_key,
    ),
    Telling(
        "network-password",
        "wi-?fi|wlan",
        " \t:",
        rf"(?:[ \t]+(?:de|du|of|for|im|in|at|pour|del)[ \t][^\n:=\"]{{1,32}}?)?[ \t]*:[ \t]+{QUOTE}{ODD_VALUE}",
        checks.is_code_of_network,
    ),
)
LATER = (*_LOOSE, *_ROTATED, *_NETWORKS)
