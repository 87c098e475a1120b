"""Secrets in fields that are told by their neighbours: directives, cookies, and values whose names stand further off."""

from decklog.redact.rules.rule import Rule, rule

_NAMED = r"(?:password|passwd|passphrase|secret|token|(?:api|access|secret|private|account)[_-]?key)"
# What may stand between the name of a thing and its value, such as its type.
_OTHER_FIELD = r"(?:[\"']?\w{1,24}[\"']?[ \t]*:[ \t]*(?:\"[^\"\n]{0,64}\"|'[^'\n]{0,64}'|[\w.-]{1,40})[ \t]*(?:,\s*|\n[ \t]*))"

_BEFORE_BLANK = (
    r"(?:[A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*(?:PASSWORD|PASSWD|SECRET|TOKEN|KEY)"
    r"|[a-z][a-z0-9]*[_-](?:[a-z0-9]+[_-])*(?:password|passwd|secret|token|key))[ \t]+(?:<<<[ \t]*)?[\"']?"
)

FIELDS: tuple[Rule, ...] = (
    rule(
        "directive-secret",
        "password passwd passphrase secret token key credential pwd",
        r"[^\s\"'=:;,(]\S{11,}?",
        keep=r"(?m:^)[ \t]*[\w.:/-]*?(?i:password|passwd|passphrase|pwd|secret|token"
        r"|(?:secret|access|private|api|auth|account|signing|encryption|master|shared)[._-]?key|credentials?)"
        r"[ \t]+(?:REG_\w*SZ[ \t]+)?[\"']?",
        until=r"[\"']?;?[ \t]*(?m:$)",
        random=True,
        glued=True,
    ),
    # A name of a program's, with its value behind a blank: `env:set AUTH_SECRET …`, `secret_access_key …`.
    rule(
        "directive-key",
        "password passwd secret token key",
        r"[A-Za-z0-9+/][\w.~+/=-]{15,}",
        start=rf"{_BEFORE_BLANK}[A-Za-z0-9+/][\w.~+/=-]{{7}}",
        keep=_BEFORE_BLANK,
        until=r"(?:[\s\"']|$)",
    ),
    rule(
        "cookie",
        "name",
        r"[^\s\"'\\]{16,}",
        keep=r"(?i:\bname[\"']?[ \t]*[:=][ \t]*[\"']"
        r"[\w.-]{0,40}(?:sess|sid|auth|jwt|csrf|xsrf|login|remember|ticket|identity)[\w.-]{0,40}"
        r"[\"'][ \t]*,\s*[\"']?value[\"']?[ \t]*[:=][ \t]*[\"'])",
        random=True,
    ),
    rule(
        "cookie",
        "cookie",
        r"[^\s\"'\\]{16,}",
        start=r"(?i:cookies?[\w.]*[\"']?[ \t]*(?:[=:(][ \t]*)?[({\[])",
        keep=r"(?i:cookies?[\w.]{0,24}[\"']?[ \t]*(?:[=:(][ \t]*)?[({\[][ \t]*(?:\w+[ \t]*,[ \t]*)?[\"'][\w.-]{1,48}[\"']\]?"
        r"[ \t]*(?:=>|[:,=])[ \t]*[\"'])",
        random=True,
        glued=True,
    ),
    rule(
        "cookie",
        "true\t false\t",
        r"\S{16,}",
        keep=r"(?m:^)(?:#HttpOnly_)?[\w.-]+\t(?:TRUE|FALSE)\t\S+\t(?:TRUE|FALSE)\t\d+\t[\w.-]+\t",
        random=True,
        glued=True,
    ),
    rule(
        "listed-password",
        "password passwd passphrase secret token key",
        r"[^\s\"',}]{4,}",
        start=rf"(?i:{_NAMED}[\"']?:?(?:[ \t]*,\s*|[ \t]*\n[ \t]*)[\"']?\w{{1,24}}[\"']?[ \t]*:)",
        keep=rf"(?i:{_NAMED}[\"']?:?(?:[ \t]*,\s*|[ \t]*\n[ \t]*){_OTHER_FIELD}{{1,3}}"
        r"[\"']?(?:\w*value|default)[\"']?[ \t]*:[ \t]*[\"']?)",
        odd=True,
        glued=True,
    ),
    rule(
        "listed-password",
        "password passwd passphrase secret token key",
        r"[^\s<]{4,}",
        keep=rf"(?i:{_NAMED}\"(?:[ \t]+[\w:.-]+=\"[^\"\n]{{0,64}}\"){{1,4}}>(?:\s*<(?:\w*value|string)>)?)",
        odd=True,
        glued=True,
    ),
    # What an attribute or an annotation gives to the field below it: `#[arg(default_value = "…")]` and `db_password: String`.
    rule(
        "listed-password",
        "default",
        r"[^\"'\n]{4,}",
        start=r"(?i:default(?:_?value)?[\"']?[ \t]*(?:=>?|:|\()[ \t]*[\"'])[^\"'\n]+[\"'][^\n]*[)\]}][ \t]*\n",
        keep=r"(?i:default(?:_?value)?[\"']?[ \t]*(?:=>?|:|\()[ \t]*[\"'])",
        until=r"[\"'][^\n]{0,80}?[)\]}][ \t]*\n(?:[ \t]*[@#\[][^\n]{0,80}\n){0,2}[^\n=\"'(]{0,60}?"
        r"(?i:password|passwd|passphrase|pwd|secret|token|api_?key|_pass)[ \t]*[:;=,{?)]",
        odd=True,
        glued=True,
    ),
    rule(
        "ci-secret",
        "name= variable=",
        r"[^\s\"']{6,}",
        start=r"(?i:\b(?:name|variable)=\w*(?:token|secret|password|passwd|key))",
        keep=r"(?i:\b(?:name|variable)=\w*(?:token|secret|password|passwd|key)\w*[^\]\n]{0,60}\])",
        odd=True,
    ),
    rule(
        "ci-secret",
        "secrets.",
        r"[^'\n]{8,}",
        keep=r"(?i:secrets\.\w+\n[^\n]{0,48}=>[ \t]*')",
        random=True,
    ),
    rule(
        "password",
        "{{ ={",
        r"[^\"'\n]{4,}",
        keep=r"(?i:(?:password|passwd|passphrase|secret|token)[\"']?[ \t]*[:=][ \t]*[\"']?\{\{-?[ \t]*[\"'])",
        until=r"[\"'][ \t]*\|",
        odd=True,
        glued=True,
    ),
    rule(
        "listed-password",
        "set ",
        r"[^'\n]{4,}",
        keep=r"(?i:set[ \t]+\w+[ \t]*=[ \t]*')",
        until=r"'[^\n;]{0,40}?(?i:where[^\n;]{0,60}?'[\w.-]*(?:password|passwd|secret|token|api_?key)[\w.-]*')",
        odd=True,
    ),
    rule(
        "listed-password",
        "password passwd passphrase secret token key",
        r"[^\s\"'<>]{4,}",
        keep=rf"(?i:{_NAMED}(?:[\"']?[ \t]+(?:content|value|default)[ \t]*=[ \t]*[\"']"
        r"|[\"'][ \t]+(?:field[ \t]+)?(?:with|as|to)[ \t]+[\"']))",
        odd=True,
        glued=True,
    ),
    # Options that a list gives one by one, as calls of programs and manifests do.
    rule(
        "command-password",
        "pass secret token key",
        r"[^\s\"']{4,}",
        keep=rf"(?m:^)[ \t]*-[ \t]+[\"']?--?[\w-]*(?:{_NAMED}|pass)[\"']?[ \t]*\n[ \t]*-[ \t]+[\"']?",
        odd=True,
        glued=True,
    ),
    rule(
        "command-password",
        "-u",
        r"[^\s\"'\\]{4,}",
        keep=r"[\"'](?:-u|--user)[\"'],[ \t]*[\"'][^\s:\"'/]+:",
        odd=True,
        glued=True,
    ),
    rule(
        "command-password",
        "mysql mariadb",
        r"[^\s\"']{4,}",
        start=r"(?:mysql|mariadb)\w*[\"']",
        keep=r"(?:mysql|mariadb)\w*[\"'](?:(?:,[ \t]*|[ \t]+\w+=)[\"'][^\"'\n]*[\"']){0,6}?(?:,[ \t]*|[ \t]+\w+=)[\"']-p",
        odd=True,
    ),
    rule(
        "header-token",
        "protocol",
        r"[\w.~+/=-]{12,}",
        keep=r"(?i:-protocol:[ \t]*(?:token|bearer|access_token),[ \t]*)",
        random=True,
        glued=True,
    ),
)
