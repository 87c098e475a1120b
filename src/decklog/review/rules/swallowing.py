"""Errors that are caught and heard by nobody, in languages other than Python."""

from decklog.review.rules.rule import JVM, RECIPES, SCRIPTS, SETTINGS, SHELLS, C, Told, rule

SWALLOWED = Told(
    "swallowed-error", "an error is caught here and nobody hears of it", "Name the one that is meant, and say what happens then."
)
_TIDYING = (
    r"(?:\w+(?:\.|::))*(?i:close|flush|sync|remove|kill|stop|shutdown|set|fprint|write|release|unlock|cancel|drop|join"
    r"|reset|x|append|json|yaml|db|tx)"
)
_BRACES = (*SCRIPTS, *JVM, *C, ".cs", ".php", ".dart", ".swift", ".groovy")
_NOTHING = (
    r"(?:return(?:\s+(?:null|nil|undefined|false|true|void 0|None|0|-1|\"\"|''|\[\]|\{\}|Optional\.empty\(\)"
    r"|Collections\.empty\w+\(\)|default))?|continue|null|nil|false)?\s*;?"
)

RULES = (
    rule(SWALLOWED, _BRACES, rf"\bcatch\b\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*\{{\s*{_NOTHING}\s*\}}", bare=True),
    rule(
        SWALLOWED,
        SCRIPTS,
        r"\.catch\(\s*(?:async\s*)?(?:\(?\s*\w*\s*\)?\s*=>\s*(?:\{\s*(?:return\s*(?:null|undefined|false)?)?\s*;?\s*\}|null"
        r"|undefined|void 0|false|\(\{\}\)|\[\])"
        r"|function\s*\(\s*\w*\s*\)\s*\{\s*\}|noop|_\.noop|\(\)\s*=>\s*\(\))\s*,?\s*\)",
        r"\bon\(\s*['\"]\s*\w+\s*['\"]\s*,\s*\(\s*\w*\s*\)\s*=>\s*\{\s*\}\s*\)",
        bare=True,
    ),
    rule(
        SWALLOWED,
        SCRIPTS,
        r"process\.on\(\s*['\"](?:uncaughtException|unhandledRejection)['\"]\s*,\s*(?:\(?\s*\w*\s*\)?\s*=>"
        r"|function\s*\(\s*\w*\s*\))\s*\{\s*\}",
    ),
    rule(
        SWALLOWED,
        (".go",),
        r"\bif\s+(?:[^{};\n]*;\s*)?err\s*!=\s*nil\s*\{\s*(?:return(?:\s+nil)?(?:\s*,\s*nil)?|continue)?\s*\}",
        r"^[ \t]*\w+(?:\s*,\s*\w+)*\s*,\s*_\s*:?=\s*(?:strconv|json|os|io|ioutil|http|url|time|base64|hex|sql|xml|yaml|exec|net"
        r"|bufio|gzip|tls|x509|rsa|jwt"
        r"|db|tx|conn|client|rows|stmt|store|repo|svc|service)\.\w+\(",
        r"^[ \t]*_\s*=\s*(?:json|yaml|xml|db|tx|store|repo|svc|service|client|sql)\.\w+\(|^[ \t]*_\s*,\s*_\s*=\s*(?:db|tx|store"
        r"|repo"
        r"|client|stmt)\.\w+\(",
        r"^[ \t]*_\s*=\s*\w+(?:\.\w+)*\.Err\(\)|^[ \t]*\w+\s*,\s*_\s*:?=\s*\w+\.(?:New|Open|Parse|Load|Read|Dial|Connect|Create"
        r"|Decode|Unmarshal)\w*\(",
        r"^[ \t]*_\s*=\s*err\s*$|\brecover\(\)\s*(?:\n\s*)?\}\s*\(\s*\)",
        bare=True,
    ),
    rule(
        SWALLOWED,
        (".rs",),
        r"\bErr\(\s*_?\w*\s*\)\s*=>\s*(?:\{\s*\}|\(\s*\))|\bif\s+let\s+Err\([^)]*\)\s*=[^{};]{0,400}\{\s*\}",
        r"^[ \t]*(?!let\b|return\b)[\w.:]+[^;=\n]*\)\s*\.ok\(\)\s*;",
        r"^[ \t]*let\s+_\s*=\s*(?:fs|std::fs|db|tx|conn|client|store|self)(?:\.|::)[^;]{0,400}\(",
        bare=True,
    ),
    rule(
        SWALLOWED,
        (".rb",),
        r"\brescue\s+nil\b|\brescue\b[^\n]*\n\s*(?:nil|next|false|return)?\s*\n?\s*end\b|\brescue\s+(?:Exception|StandardError"
        r"|=>)[^\n]*\n\s*(?:nil|next|false|#[^\n]*)?\s*\n\s*end\b",
        bare=True,
    ),
    rule(
        SWALLOWED,
        (".ps1", ".psm1"),
        r"(?i)-ErrorAction\s+(?:SilentlyContinue|Ignore)\b|\$ErrorActionPreference\s*=\s*['\"]SilentlyContinue|\bcatch\s*\{\s*\}",
    ),
    rule(SWALLOWED, (".sql",), r"(?i)\bwhen\s+others\s+then\s+null\b"),
    rule(SWALLOWED, (".ex", ".exs"), r"\brescue\s+_\w*\s*->\s*(?:nil|:ok|:error)\b"),
    rule(SWALLOWED, (".swift",), r"(?:^|[{;])[ \t]*(?:_\s*=\s*)?try\?\s", bare=True),
    rule(SWALLOWED, (".rb",), r"\S[^\n#]*\s+rescue\s+(?:nil|false|0|''|\"\"|\[\]|\{\})\s*$"),
    # What only tidies up may fail.
    rule(
        SWALLOWED,
        (".go",),
        rf"(?:^|[{{;])[ \t]*_\s*=\s*(?!{_TIDYING})(?:\w+\.)?\w+\((?!\s*\))|(?:^|[{{;])[ \t]*_\s*=\s*(?:save|store|write|update"
        rf"|delete"
        rf"|send|publish|commit|process|insert|create)\w*\(",
        bare=True,
    ),
    rule(
        SWALLOWED,
        (".rs",),
        rf"(?:^|[{{;])[ \t]*let\s+_\s*=\s*(?!{_TIDYING}|write|tx|sender)(?:\w+::)*\w+\([^;]*\)\s*;",
        bare=True,
    ),
    rule(SWALLOWED, (".lua",), r"^[ \t]*pcall\("),
    rule(
        SWALLOWED,
        (".php",),
        r"(?<![\w$])@(?:unlink|file_get_contents|fopen|mkdir|include|require|mysqli?_\w+|json_decode)\b"
        r"|error_reporting\(\s*0\s*\)",
    ),
    rule(SWALLOWED, (*SHELLS, *RECIPES), r"^[ \t]*set\s+\+e\b(?![\s\S]*^[ \t]*set\s+-\w*e)|^[ \t]*trap\s+['\"]{2}\s+ERR"),
    rule(SWALLOWED, (*SETTINGS,), r"^[ \t]*(?:-[ \t]*)?ignore_errors\s*:\s*(?:true|yes)\b"),
    rule(SWALLOWED, (".vb", ".bas", ".vbs"), r"(?i)^[ \t]*on\s+error\s+resume\s+next"),
)
