"""The ways of telling codes, seeds of them, licences and keys of ciphers: "unlock code …", "setup key: …"."""

from decklog.redact.sentences import checks, codes
from decklog.redact.sentences.telling import END, QUOTE, Telling

_PLACES = "door|gate|alarm|safe|entry|entrance|garage|locker|lock|building|office"
_LOCKS = (
    "unlock|access|activation|recovery|backup|rescue|emergency|verification|security|2fa|mfa|otp|totp|login|sign-?in"
    "|pairing|scratch"
)
_AUTHENTICATOR = (
    r"(?:authenticator|2fa|mfa|t?otp|two[- ]factor)(?: app)?(?: (?:setup|secret|manual|entry|shared|enrol?lment)){0,3} "
    r"(?:key|seed|secret)|(?:setup|manual entry|enrol?lment|(?:type|enter) (?:the|this)) key|authenticator(?: app)?"
)
_FOREIGN_CODES = (
    r"einmal-?code|best[\xe4a]tigungscode|c[\xf3o]digo de (?:verifica(?:ci[\xf3o]n|[\xe7c][\xe3a]o)|(?:aces|acce|ace)so|seguridad"
    r"|seguran[\xe7c]a|confirma[\xe7c]\w{2,4})|code de (?:v[\xe9e]rification|s[\xe9e]curit[\xe9e]|confirmation)"
    r"|codice di (?:verifica|sicurezza|accesso)|verificatiecode|kod weryfikacyjny"
    r"|code de connexion|code [\xe0a] usage unique|c[\xf3o]digo de (?:un solo uso|inicio)|codice (?:monouso|usa e getta)"
    r"|einmalpasswort|engangskode"
)
# First what is the longer of two openings at one place.
CODES: tuple[Telling, ...] = (
    Telling(
        "otp-seed",
        _AUTHENTICATOR,
        " \t:=(",
        r"(?:[ \t]*\([^)\n]{1,40}\)|[ \t]+(?:for|of|on|into|in|by)[ \t][^\n:=\"']{1,80}?|[ \t]+(?:instead|manually))?"
        r"(?:[ \t]*[:=]|[ \t]+(?:is|was)|[ \t])[ \t]*[\"'`]?"
        r"([a-z2-7]{16,64}=*|[a-z2-7]{4}(?:[ -][a-z2-7]{4}){3,15})(?:[^\w]|$)",
        codes.is_seed,
    ),
    Telling(
        "unseal-key",
        r"(?:unseal|recovery|seal) key(?: (?:share|part|shard))?",
        " \t:=(",
        r"(?:[ \t]*[(#]?\d{1,2}\)?(?:[ \t]+of[ \t]+\d{1,2})?)?(?:[ \t]*[:=]|[ \t]+(?:is|was))[ \t]*[\"'`]?([\w+/=-]{32,90})",
        codes.is_share,
    ),
    Telling(
        "license-key",
        r"(?:licen[cs]e|product|activation|registration)(?: key| code|-key|_key)|licen[cs]e",
        " \t:=(",
        r"(?:[ \t]*[( ][^\n:=\"']{1,60}?)?(?:[ \t]*[:=]|[ \t]+(?:is|was))[ \t]*[\"'`]?"
        r"([A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){2,7})(?:[^\w-]|$)",
        codes.is_licence,
    ),
    Telling(
        "license-key",
        "serial:|serial key:",
        " \t",
        r"[ \t]*[\"'`]?([A-Z0-9]{5}(?:-[A-Z0-9]{5}){3,5})(?:[^\w-]|$)",
        codes.is_licence,
    ),
    Telling(
        "encryption-key",
        r"(?:fernet|aes(?:-?\d{3})?|hmac|cipher|encryption|decryption|signing|master|private) key",
        " \t:=",
        r"(?:[ \t]*\((?:hex|base64|b64|raw|base58|wif)[^)\n]{0,24}\)"
        r"|[ \t]+(?:for|of|on|to|into|in|from|at|we|i|you|they|that|which|used|behind|your|this|it)[ \t][^\n:=\"']{1,60}?)?"
        r"(?:[ \t]*[:=]|[ \t]+(?:is|was|to)(?:[ \t]+(?:now|still|currently))?:?|[ \t]+->|,?[ \t]+(?:it|this|that|which)"
        r"(?:'s|[ \t]+(?:is|was))(?:[ \t]+(?:now|still))?:?)?[ \t]*[\"'`]?([\w+/=-]{32,90})",
        codes.is_share,
    ),
    Telling(
        "code",
        _FOREIGN_CODES,
        " \t:=",
        r"(?:[ \t][^\n:=\"'\d]{1,40}?)?(?:[ \t]*[:=]|[ \t]+(?:est|ist|war|lautet|es|\xe8|\xe9|is|to))[ \t]*[\"'`]?"
        rf"(\d{{4,8}}){END}",
        checks.is_any,
    ),
    Telling(
        "code",
        rf"(?:{_PLACES}|{_LOCKS}|one[ -]time)[ _-](?:pass)?codes?",
        " \t:=",
        rf"(?:(?:[ \t](?:[^\n:=\"\d]|2-?(?:fa|step|sv)|\b\d{{1,3}}\b){{1,60}})?[ \t]*[:=]|[ \t]+(?:is|was))?[ \t]*{QUOTE}"
        r"(\d{4,10}#?|\d{3} \d{3}|[\w.!-]{6,40})(?:[^\w:/-]|$)",
        checks.is_code,
    ),
    Telling(
        "code",
        rf"(?:{_PLACES}|{_LOCKS}|one[ -]time)[ _-](?:pass)?codes?",
        " \t",
        rf"(?:[ \t]+(?:[a-z']{{1,12}}|\d{{1,3}})){{1,8}}"
        rf"(?:[ \t]+(?:is|was|are|(?:changed|set|reset) to)|,[ \t]+(?:it'?s|it is|now))(?:[ \t]+now)?[ \t]+"
        rf"{QUOTE}(\d{{4,10}}#?|[\w-]{{6,40}})(?:[^\w:/-]|$)",
        checks.is_number,
    ),
    # Somebody asks for it, and somebody else answers.
    Telling(
        "code",
        rf"(?:{_LOCKS}|one[ -]time|sms)[ _-](?:pass)?codes?",
        " \t?\n",
        rf"[^\n:=]{{0,60}}\n[^\n]{{1,32}}?[:>][ \t]+(?:it'?s[ \t]+)?(\d{{3}} ?\d{{3,5}}){END}",
        checks.is_any,
    ),
    Telling(
        "code",
        "m?tan",
        " \t:",
        r"(?:[ \t]+(?:for|f[\xfcu]r|pour|zu|zur)[ \t][^\n:=]{1,48}?)?(?:[ \t]*:|[ \t]+(?:is|was|ist|lautet))[ \t]*"
        rf"(\d{{6}}){END}",
        checks.is_any,
    ),
    Telling(
        "code",
        "recovery key",
        " \t:=",
        r"(?:[ \t][^\n:=\"]{1,60}?)?(?:[ \t]*[:=]|[ \t]+(?:is|was))[ \t]*[\"'`]?"
        r"([A-Z0-9]{4}(?:-[A-Z0-9]{4}){3,6}|\d{6}(?:-\d{6}){7})(?:[^\w-]|$)",
        codes.is_recovery,
    ),
    Telling("code", "otp|totp", " \t", r"[ \t]+(\d{6,8})[ \t]+(?:to|for|via|sent|was|is)\b", checks.is_any),
    Telling(
        "code",
        "otp|totp|one[ -]time password",
        " \t:=",
        rf"(?:[ \t]*[:=]|[ \t]+(?:is|was))[ \t]*{QUOTE}(\d{{6,8}}){END}",
        checks.is_code,
    ),
)
