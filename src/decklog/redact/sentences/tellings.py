"""The ways of telling a secret: "log in with admin / …", "the PIN is …", "unlock code …"."""

from decklog.redact.sentences import checks
from decklog.redact.sentences.code_tellings import CODES
from decklog.redact.sentences.later_tellings import LATER
from decklog.redact.sentences.telling import END, KEYS, NAMED, ODD_VALUE, QUOTE, VALUE, Telling

_USERS = (
    r"(?:\w{0,16}admin\w{0,10}|root|user\w{0,8}|test\w{0,8}|demo|guest|ops|pi\b|postgres|sa|ubuntu|deploy|operator|support"
    r"|service|svc)"
)
_WHOSE = (
    r"(?:you|we|i|they|he|she|it|that|which|used|set|given|agreed|everyone|everybody|has|was|got|will|changed|updated|rotated"
    r"|reset|now)\b"
)
_BEING = (
    r"(?:is|was|are|were|remains|stays|equals|became|will be|used to be|has (?:always )?been|ends up being|turned out to be)"
    r"(?: (?:now|still|currently|always|just|simply|only|literally|again))*"
)
# An equals sign that stands right between two characters may be one of the value's own.
_COLON = r"(?:[ \t]*:|[ \t]+=|=[ \t\"'`])"
_WHOM = r"['\"][^'\"\n]{1,120}['\"]"
_LOGGING = r"(?:log|sign)(?:ged|ging)?[ -]?[io]n(?:to)?|login|ssh in|get in|credentials?|creds?|zugangsdaten|account|wi-?fi|wlan"
_QUOTED_WORDS = (
    rf"(?:[ \t]+(?:for|of|on|to|at|from|under|in|we|i|you)[ \t][^\n:=\"'`]{{1,48}}?|[ \t]*\([^)\n]{{1,40}}\))?"
    rf"(?:[ \t]*[:=]|[ \t]+(?:{_BEING})(?:[ \t]+(?:set|changed|reset)[ \t]+to|[ \t]+the (?:sentence|phrase|words?))?)[ \t:]*"
    r"[\"'`?\xab]([^\"'`?\xbb\n]{4,64})[\"'`?\xbb]"
)
_OF = r"for|of|on|to|at|from|de|du|des|del|della|der|f[\xfc?u]e?r|da|do|para|voor|pour|van|til|zu"
TELLINGS: tuple[Telling, ...] = (
    *CODES,
    Telling("told-password", NAMED, " \t:=", _QUOTED_WORDS, checks.is_odd_phrase),
    Telling(
        "told-password",
        NAMED,
        " \t:=",
        r"(?:[ \t]+(?:for|of|on|to|at|from|under)[ \t][^\n:=\"'`]{1,48}?|[ \t]*\([^)\n]{1,40}\))?[ \t]*[:=][ \t]+"
        r"([^\s\"'`]+(?: [^\s\"'`]+){1,7})[ \t]*(?:\n|$)",
        checks.is_odd_line,
    ),
    Telling("told-password", NAMED, ",", rf",[ \t]+{QUOTE}{VALUE}[\"'`]?,", checks.is_set_in),
    Telling(
        "told-password",
        NAMED,
        " \t(",
        r"[ \t]*\((?:(?:it|which)[ \t]+)?(?:(?:is|was|now|new|old|temporary|currently)[ \t:]+)?([^\s()\"'`,]{5,64})\)",
        checks.is_set_in,
    ),
    Telling("told-password", NAMED, " \t", r"(?:[ \t]+[a-z']{1,14}){1,6}[ \t]*\(([^\s()\"'`,]{7,64})\)", checks.is_random),
    Telling("told-password", NAMED, " \t", rf"[ \t]+from[ \t]+\S{{4,64}}[ \t]+to[ \t]+{QUOTE}{ODD_VALUE}", checks.is_set_in),
    Telling("told-password", NAMED, " \t", rf"[ \t]+from[ \t]+{QUOTE}{ODD_VALUE}[\"'`]?[ \t]+to[ \t]", checks.is_set_in),
    Telling(
        "pin",
        "pin",
        " \t'",
        rf"(?:'s|[ \t]+(?:is|was|now|to|i chose:|\xe8|ist|est|es)(?:[ \t]+now)?)?[ \t]+(\d{{4,8}}){END}",
        checks.is_pin_given,
    ),
    Telling(
        "told-password",
        NAMED,
        ",",
        rf",[ \t]+(?:(?:then|just|please|simply|so|always|you can|we|i|and)[ \t]+){{0,2}}"
        rf"(?:it'?s|it[ \t]+(?:is|was)|that's|type|enter|use|try|give(?:[ \t]+it)?|answer(?:[ \t]+with)?"
        rf"|say|put|send|paste|mine[ \t]+is|which[ \t]+is)"
        rf"(?:[ \t]+(?:still|now))?[ \t:]+{QUOTE}{VALUE}",
        checks.is_said,
    ),
    Telling("told-password", NAMED, ",", rf",[^\n:=\"']{{0,60}}:[ \t]*{QUOTE}{VALUE}", checks.is_told),
    Telling(
        "told-password",
        NAMED,
        " \t",
        rf"[ \t]+(?:for|of|on|to|at|from|under)[ \t][^\n:=\"']{{1,48}}?(?:{_COLON}|[ \t](?:{_BEING}))[ \t]*{QUOTE}{VALUE}",
        checks.is_told,
    ),
    Telling("told-password", NAMED, " \t", r"[ \t]+[\w.@-]{2,40}[ \t]*[:=][ \t]*([^\s\"'`,<>()]{8,64})", checks.is_random),
    Telling("told-password", NAMED, " \t", rf"[ \t]+(?:{_BEING})[ \t:]+[\"'`*]{{0,3}}{VALUE}", checks.is_said),
    Telling("told-password", NAMED, " \t", rf"[ \t]+{QUOTE}{ODD_VALUE}", checks.is_right_behind),
    Telling(
        "told-password", NAMED, " \t,", rf",?[ \t]+(?:[a-z.]{{1,14}}[ \t]+){{0,4}}{QUOTE}{ODD_VALUE}", checks.is_unmistakable
    ),
    Telling(
        "told-password",
        NAMED,
        " \t",
        rf"[ \t]+(?:(?:for|of|on|to|at|from|in (?:the|our))[ \t][^\n:=\"']{{1,48}}?|\([^)\n]{{1,40}}\))(?:{_COLON}"
        rf"|[ \t](?:{_BEING}))[ \t]*[\"'`*]{{0,3}}{VALUE}",
        checks.is_said,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t",
        r"[ \t]+(?:is|was)[ \t:]+[\"'`]([a-z]{2,}(?: [a-z]{2,}){2,9})[\"'`]",
        checks.is_quoted_phrase,
    ),
    Telling(
        "pin",
        r"pin",
        " \tc",
        rf"(?:[ -]?code)?[ \t]+(?:{_OF})[ \t][^\n:=\"']{{1,48}}?(?:[ \t]*[:=]|[ \t](?:is|was"
        rf"|being|\xe8|est|ist|lautet|es|to|wurde auf|(?:was )?(?:changed|set|reset) to)"
        rf"(?:[ \t](?:now|jetzt|still|(?:ab|seit) (?:heute|morgen|sofort)))?)[ \t]*{QUOTE}(\d{{4,8}}){END}",
        checks.is_any,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t?",
        rf"(?:[ \t]+(?:for|of|on|to|at|in)[ \t][^\n:=\"'?]{{1,48}})?\?[ \t]+"
        rf"(?:it'?s|it[ \t]+(?:is|was)|that's|try|use|should[ \t]be|yes,?|sure,?)[ \t:]+{QUOTE}{VALUE}",
        checks.is_said,
    ),
    Telling(
        "told-password",
        NAMED,
        "?",
        rf"\?[^\n]{{0,24}}\n[^\n]{{0,24}}?(?:\b(?:is|was|be|use|try)|'s)[ \t:]+{QUOTE}{VALUE}",
        checks.is_said,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t?",
        rf"(?:[ \t]+[^\n:=\"'?]{{1,48}})?\?[ \t]*\n[^\n]{{1,40}}?[:>][ \t]+{QUOTE}{VALUE}[\"'`]?[ \t]*(?:\n|$)",
        checks.is_said,
    ),
    Telling(
        "told-password",
        "passphrase",
        " \t:",
        r"(?:[ \t]+(?:for|of|on|to|from|under)[ \t][^\n:=\"']{1,48}?)?(?:[ \t]*:|[ \t]+(?:is|was))(?:[ \t]+now)?[ \t]*"
        r"[\"]([a-z][a-z']*(?: [a-z']+){3,11})[.!]?[\"]",
        checks.is_spoken_phrase,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t",
        rf"(?:[ \t]+[a-z]+){{1,6}},[ \t]+(?:it[ \t]+is|it's|use|now)[ \t:]+{QUOTE}{VALUE}",
        checks.is_told_plainly,
    ),
    Telling("told-password", NAMED, " \t", rf"(?:[ \t]+[a-z']{{1,14}}){{1,6}}:[ \t]+{QUOTE}{VALUE}", checks.is_announced),
    Telling(
        "told-password",
        NAMED,
        " \t",
        r"[ \t]+[\"'`]?([a-z]{3,12}(?:[-_.][a-z]{3,12}){3,7})(?:[\s\"'`.,;)]|$)",
        checks.is_words,
    ),
    Telling("told-password", NAMED, "'", rf"'s[ \t]+(?:now[ \t]+)?{QUOTE}{VALUE}", checks.is_told_plainly),
    Telling(
        "told-password",
        NAMED,
        " \t",
        rf"[ \t]+{_WHOSE}[^\n:=\"]{{0,60}}?(?:[ \t]*[:=]|(?:[ \t](?:is|was)|(?:[ \t]it)?'s)(?:[ \t]now)?)[ \t]+"
        rf"{QUOTE}{VALUE}",
        checks.is_told_plainly,
    ),
    Telling(
        "told-password",
        "passphrase",
        " \t:=",
        r"(?:[ \t]+(?:for|of|on|to|from|under)[ \t][^\n:=\"']{1,48}?)?(?:[ \t]*(?:[:=]|->|=>)|[ \t]+(?:is|was))?[ \t]*"
        r"[\"']([a-z]{2,}(?: [a-z]{2,}){3,9})[\"']",
        checks.is_quoted_phrase,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t:=(",
        r"(?:[ \t]+(?:for|of|on|to|from)[ \t][^\n:=\"']{1,48}?|[ \t]*\([^)\n]{1,40}\))?(?:[ \t]*[:=]|[ \t]+(?:is|was))[ \t]*"
        r"[\"'`]?([a-z]{4}(?: [a-z]{4}){3}|[a-z0-9]{4}(?: [a-z0-9]{4}){3,5})(?:[^\w ]|\n|$)",
        checks.is_in_fours,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t",
        rf"(?:[ \t]+(?:of|for|on|at|in)[ \t]+(?:(?:the|user|our|host|account)[ \t]+){{0,2}}\S{{2,64}}){{1,3}}"
        rf"[ \t]+(?:back[ \t]+)?to[ \t:]+{QUOTE}{VALUE}",
        checks.is_set_to,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t",
        rf"[ \t]+from[ \t]+(?:[^\s:=]{{1,40}}[ \t]+){{1,4}}?to[ \t:]+{QUOTE}{VALUE}",
        checks.is_set_to,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t:",
        r"(?:[ \t]+for[ \t][^\n:]{1,120})?:[ \t]+([a-z0-9]+(?: [a-z0-9]+){3,9})[ \t]*(?:\n|$)",
        checks.is_typed,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t",
        rf"[ \t]+(?:(?:will|should)[ \t]be|es|ist|est|-|\([^)\n]{{1,40}}\)[ \t]*[:=])[ \t]+{QUOTE}{VALUE}",
        checks.is_told,
    ),
    Telling("told-password", NAMED, " \t-", rf"[ \t]*->[ \t]*{QUOTE}{VALUE}", checks.is_told),
    Telling("told-password", NAMED, " \t", rf"[ \t]+(?:[a-z]+[ \t]+){{0,6}}to[ \t:]+{QUOTE}{VALUE}", checks.is_set_to),
    Telling(
        "told-password",
        NAMED,
        " \t",
        rf"[ \t]+for[ \t]+(?:[a-z]+[ \t]+){{0,3}}{_WHOM}(?::|[a-z \t]*[ \t]to)[ \t]+{QUOTE}{VALUE}",
        checks.is_asked_for,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t",
        r"[ \t]+(?:is|was|has been)[ \t]+(?:generated|created|set|assigned|issued)[^\n:]{0,48}:[ \t]+([^\s\"'`]{4,64})",
        checks.is_generated,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t",
        r"[ \t]+to[ \t:]+([a-z]{3,}(?: [a-z]{3,}){2,5}?)(?: (?:for|until|temporarily|today)\b|[.,;\n]|$)",
        checks.is_phrase,
    ),
    Telling(
        "told-password",
        NAMED,
        " \t:=",
        rf"(?:[ \t]+(?:for|of|on|to|at|from|under)[ \t][^\n:=\"'`]{{1,48}}?)?(?:[ \t]+(?:is|was))?[ \t]*[:=][ \t]*"
        rf"{QUOTE}([a-z][a-z0-9]*(?: [a-z0-9]+[!?]?){{2,9}}){QUOTE}[ \t]*[}}\]]*(?:\n|$)",
        checks.is_passphrase,
    ),
    Telling(
        "told-password",
        _LOGGING,
        " \t:=",
        rf"(?:(?:[ \t]+(?:for|of|on|to|at|in)[ \t][^\n:=\"'`]{{1,48}}?)?(?:[ \t]*[:=]|[ \t]+(?:are|is|were|was))"
        rf"|[ \t]+(?:for|of|on|to|at|in|into)[ \t](?:https?://[^\s\"'`]{{1,96}}|[^\n:=\"'`]{{1,48}}?)[ \t]"
        rf"(?:with|as|using|via))?[ \t]*"
        rf"(?:(?:with|as|using|via|by|to)[ \t]+)?(?:user[ \t]+)?"
        rf"{QUOTE}[\w.@+-]{{1,40}}{QUOTE}(?:[ \t]*[/:|]|[ \t]+and)[ \t]*{QUOTE}{VALUE}",
        checks.is_partner,
    ),
    Telling(
        "told-password",
        _LOGGING,
        " \t",
        rf"(?:[ \t]+(?:to|on|at)[ \t]+[\w.:/-]{{1,120}})?[ \t]+as[ \t]+{QUOTE}[\w.@+-]{{2,40}}{QUOTE},?[ \t]+"
        rf"(?:with|using|and use|and enter)[ \t]+(?:(?:the[ \t]+)?pass\w*[ \t]+)?{QUOTE}{VALUE}",
        checks.is_partner,
    ),
    Telling(
        "told-password",
        rf"(?:use|using|try)[ \t]+{QUOTE}[a-z][\w.-]{{1,24}}:",
        "",
        rf"{QUOTE}([^\s\"'`,<>/:]{{6,64}})",
        checks.is_chosen_plainly,
    ),
    Telling(
        "told-password",
        rf"(?:use|using|try|enter(?:ed|ing)?|typed?)[ \t]+{QUOTE}[a-z][\w.@+-]{{1,40}}{QUOTE}[ \t]+/",
        "",
        rf"[ \t]+{QUOTE}{VALUE}",
        checks.is_partner,
    ),
    Telling(
        "told-password",
        rf"(?:use|using|try)[ \t]+{QUOTE}{_USERS}",
        " \t/:\"'`",
        rf"{QUOTE}[ \t]*[/:][ \t]*{QUOTE}{VALUE}",
        checks.is_partner,
    ),
    Telling(
        "told-password",
        "root|admin|administrator|postgres|ubuntu|oracle|guest",
        " \t",
        rf"[ \t]+/[ \t]+{QUOTE}{VALUE}",
        checks.is_partner,
    ),
    Telling(
        "told-password", "root|admin|administrator", " \t", r"[ \t]+/[ \t]+([^\s\"'`]{8,64})[ \t]*(?:\n|$)", checks.is_partner
    ),
    Telling("told-password", "root|admin|administrator|guest", ":", rf":{QUOTE}{VALUE}", checks.is_partner),
    Telling(
        "secret-answer",
        r"(?:secret|security)[ _-]answer|answer to the (?:secret|security) question",
        " \t:=",
        r"[ \t]*(?:[:=]|is\b)[ \t]*[\"']?([^\s\"'<>{$\[(][^\n\"'<>]{2,48}?)(?:[\"'\n]|$)",
        checks.is_answer,
    ),
    Telling(
        "pin",
        "pin",
        " \t:=-c",
        rf"(?:[ -]?code)?[ \t]*(?:[:=]|is\b)[ \t]*{QUOTE}(\d{{4,8}}){END}",
        checks.is_pin,
    ),
    Telling(
        "code",
        "a code",
        "\n ",
        rf"[^\n:=]{{0,32}}\n[^\n]{{0,32}}?(?:it'?s|is)[ \t]+(\d{{3}} ?\d{{3}}){END}",
        checks.is_any,
    ),
    Telling(
        "token",
        r"credentials?|tokens?|api[ _-]?keys?|access keys?|secrets?",
        " \t",
        r"[ \t]+[\"'(*`]{0,3}([\w.~+/=-]{16,})",
        checks.is_mixed,
    ),
    Telling(
        "token",
        r"(?:api|access|secret|service|auth|signing|app)[ _-]?keys?|(?:api|access|auth|bearer|deploy|refresh)[ _-]tokens?",
        " \t",
        r"[ \t]+[\"'(*`]{0,3}([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{48}|[0-9a-f]{64})(?:[^\w-]|$)",
        checks.is_hex_key,
    ),
    Telling(
        "token",
        r"credentials?|tokens?|api[ _-]?keys?|access keys?|secrets?",
        " \t",
        r"[ \t]+[\"'(*`]{0,3}([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{48}|[0-9a-f]{64})(?:[^\w-]|$)",
        checks.is_hex_token,
    ),
    Telling(
        "token",
        KEYS,
        " \t",
        r"(?:,?[ \t]+[A-Za-z'?\xc0-\xff-]+){0,10}(?:[ \t]*[:=]|(?:[ \t]+(?:is|was)|'s)(?: now| still)?)[ \t]+"
        r"[\"'`]?([\w.~+/=-]{16,})",
        checks.is_key,
    ),
    Telling(
        "secret",
        KEYS,
        " \t",
        rf"[ \t]+(?:for|of|on|to|at|from)[ \t][^\n:=\"']{{1,48}}?(?:[ \t]*[:=]|[ \t](?:is|was))[ \t]*[\"'`]{VALUE}",
        checks.is_owned_secret,
    ),
    Telling(
        "token",
        KEYS,
        " \t([",
        r"[ \t]*[(\[][^)\]\n]{1,40}[)\]][ \t]*[:=-][ \t]*[\"'`]?([\w.~+/=-]{16,})",
        checks.is_key,
    ),
    Telling("token", KEYS, " \t", r"[ \t]+(?:[a-z]+[ \t]+){0,6}(?:to|as)[ \t:]+[\"'`]?([\w.~+/=-]{16,})", checks.is_key_set),
    Telling("secret", "secrets?", " \t:=", _QUOTED_WORDS, checks.is_odd_phrase),
    Telling(
        "token",
        KEYS,
        " \t(,",
        r"[ \t]*[(,][ \t]*(?:(?:the[ \t]+)?(?:old|previous|former|last|current|new)(?:[ \t]+(?:one|key|token|secret|value))?"
        r"(?:[ \t]*[:=]|[ \t]+(?:is|was))|(?:was|formerly|previously)[ \t]*:?)[ \t]*[\"'`]?([\w.~+/=-]{16,})",
        checks.is_former_key,
    ),
    Telling(
        "told-password",
        "credentials?|creds?",
        " \t:=",
        rf"[ \t:=]+(?:[\w.@-]{{1,20}},?[ \t]+(?:[/|][ \t]+)?){{0,5}}{QUOTE}{ODD_VALUE}",
        checks.is_unmistakable,
    ),
    Telling(
        "told-password",
        "credentials?|creds?|account|login",
        " \t(",
        rf"(?:[ \t]+[A-Za-z']+){{0,8}}[ \t]*\([\w.@+-]{{1,64}}[ \t]*[/:][ \t]*{QUOTE}([^\s\"'`,<>()]{{4,64}})",
        checks.is_partner,
    ),
    Telling("token", r"tokens?|api[ _-]?keys?|secrets?", " \t-", r"[ \t]*->[ \t]*[\"']?([\w.~+/=-]{16,})", checks.is_key),
    Telling(
        "token",
        r"(?:the|your|my|this|our|unseal|master|new) key",
        " \t:",
        r"(?:[ \t]+\d{1,2}|(?:[ \t]+[A-Za-z']+){0,6})?(?:[ \t]*:|[ \t]+is:?)[ \t]+[\"']?([\w.~+/=-]{16,})",
        checks.is_mixed,
    ),
    Telling(
        "token",
        r"(?:the|your|my|this|our|unseal|master|new) key",
        " \t",
        r"[ \t]+(?:for|of|to)(?:[ \t]+[\w.-]+){1,5}(?:[ \t]*:|[ \t]+is:?)[ \t]+[\"'`]?"
        r"([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{48}|[0-9a-f]{64})(?:[^\w-]|$)",
        checks.is_hex_key,
    ),
    Telling(
        "token",
        r"(?:the|your|my|this|our|unseal|master|new) key",
        " \t:",
        r"[ \t]+[\"'(*`]{0,3}([\w.~+/=-]{24,})",
        checks.is_mixed,
    ),
    Telling(
        "connection-password",
        r"login\(|log_in\(|sign_?in\(|logon\(|authenticate\(|auth\(|set_?credentials\(|(?:set_?)?basic_?auth\(|connect\(",
        "",
        r"[ \t]*(?:(?:[\w.$]{1,64}|\"[^\"\n]{1,64}\"|'[^'\n]{1,64}'),[ \t]*){1,3}[\"']([^\"'\n\s]{6,64})[\"']",
        checks.is_partner,
    ),
    Telling("connection-password", r"auth\(", "", r"[ \t]*[\"']([^\"'\n\s]{8,64})[\"'][ \t]*\)", checks.is_made),
    Telling("node-cookie", r"setcookie|cookie", " \t", r"[ \t]+[\"']?([A-Za-z0-9_]{8,64})(?:[\"'\s]|$)", checks.is_node_cookie),
    Telling(
        "node-cookie",
        r"release_cookie|erlang[._ ]?cookie",
        " \t:=",
        r"[ \t]*[:=][ \t]*[\"']?([A-Za-z0-9_]{8,64})(?:[\"'\s]|$)",
        checks.is_node_cookie,
    ),
    *LATER,
)
