"""Secrets known by where they stand: key blocks, URLs, headers, directives, hashes."""

from decklog.redact.rules.rule import SIGNED, Rule, rule

_BODY_LINE = r"(?:[A-Za-z0-9+/=]{8,}|[A-Z][A-Za-z-]+: [^\n\"'\\]{0,120}|=[A-Za-z0-9+/]{4})"
# What an editor, a log, a patch or a program's source puts before the lines of a key: numbers, arrows, quotes.
_LINE_LEAD = r"(?:[\s>#*|+?-]|[\w./-]{0,64}\d{1,6}[:|?\t-])*"
_LAST_LINE = r"(?:[A-Za-z0-9+/]{2,}={1,2}|[\"'][A-Za-z0-9+/]{4,})"
_QUOTED_LEAD = r"[\s>#*|+?,.&\\\"'`_-]*"

KEY_BLOCKS: tuple[Rule, ...] = (
    rule(
        "private-key",
        "-----begin",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[A-Za-z0-9+/=\s:,.;()@>#*|<_?\[\]]|-[^-])*-{5,6}END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rf"|(?:{_QUOTED_LEAD}[A-Za-z0-9+/=]{{32,}})+(?:{_QUOTED_LEAD}{_LAST_LINE})?|(?:{_LINE_LEAD}{_BODY_LINE})+)",
        glued=True,
    ),
    rule(
        "private-key",
        "---- begin",
        r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----(?:[A-Za-z0-9+/=\s:,.]|-[^-])*"
        r"---- END SSH2 ENCRYPTED PRIVATE KEY ----",
        glued=True,
    ),
    rule(
        "private-key",
        "-----begin",
        r"-----BEGIN OpenVPN (?:Static|tls-crypt-v2 (?:client|server)) key(?: V\d)?-----"
        r"(?:[A-Za-z0-9+/=\s:,.>#*|?\[\]]|-[^-])*-{5,6}END OpenVPN [\w -]{1,40}-----",
        glued=True,
    ),
    rule(
        "putty-private-key",
        "putty-user-key-file",
        r"PuTTY-User-Key-File-\d:(?:[A-OQ-Za-z0-9+/=\s:,.@_-]|P[^u\"'\\]|Pu[^T\"'\\])*?"
        r"(?:Private-MAC: [0-9a-f]+|Private-Lines: \d+[A-Za-z0-9+/=\s]*)",
    ),
    rule(
        "jwt",
        "eyj",
        r"eyJ[\w-]{8,}={0,2}\.eyJ[\w-]{4,}={0,2}(?:\.[\w-]*={0,2})?|eyJ[\w-]{8,}(?:\.[\w-]*){4}",
        glued=True,
    ),
    rule(
        "jwk-private",
        '"d" "dp" "dq" "qi" "k" "p" "q"',
        r"[\w-]{40,}",
        keep=r'"(?:d|dp|dq|qi|k|p|q)"\s*:\s*"',
        glued=True,
    ),
    rule("bitcoin-key", "xprv yprv zprv tprv", r"[xyzt]prv[0-9A-Za-z]{90,}"),
    rule(
        "seed-phrase",
        "phrase mnemonic",
        r"(?:[a-z]{3,8} ){11,23}[a-z]{3,8}\b",
        keep=r"(?i:(?:mnemonic|(?:seed|recovery|backup)[ _-]?phrase)\w*[\"']?\s*[:=]\s*[\"']?)",
    ),
)

_USER = r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/@:\"'<>?#]{0,64}@?[^\s/@:\"'<>?#]{0,64}:"
_HOST = r"[\w.-]+(?:[:/?,;\s\"'<>`)\]}\\]|$)"

PLACES: tuple[Rule, ...] = (
    rule(
        "url-password",
        "://",
        r"[^\s\"'<>`/?#]{1,512}",
        keep=r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/@:\"'<>?#]{0,64}@?[^\s/@:\"'<>?#]{0,64}:",
        until=rf"@(?:[$%{{*<\[]|{_HOST})",
    ),
    # Signs that end a host are allowed in a password too, as long as a host comes after it.
    rule("url-password", "://", r"[^\s\"']{1,96}?", keep=_USER, until=f"@{_HOST}"),
    rule(
        "url-token",
        "://",
        r"[\w.~%-]{20,}",
        keep=r"[A-Za-z][A-Za-z0-9+.-]{1,30}://",
        until=r"(?::(?:x-oauth-basic|x-token-auth|x)?)?@[\w.-]",
        random=True,
    ),
    rule(
        "oracle-password",
        "jdbc:oracle sqlplus",
        r"[^\s\"'@/]+",
        keep=r"(?i:(?:jdbc:oracle:thin:|sqlplus(?: -\w+)* )[\w$.-]+/)",
        until="@",
    ),
    rule(
        "signature",
        "sig= signature= security-token= hmac=",
        r"[A-Za-z0-9%+/=_~-]{16,}",
        keep=r"(?i:[?&](?:amp;)?(?:sig|signature|x-(?:amz|goog|oss|cos)-signature|x-amz-security-token|hmac)=)",
        glued=True,
    ),
    rule(
        "query-key",
        "key= code= auth= sid= jwt= k=",
        r"[\w%.~+/-]{16,}",
        keep=r"(?i:[?&](?:key|code|auth|sid|jwt|k)=)",
        random=True,
        glued=True,
    ),
    rule(
        "authorization",
        "authorization",
        r"[^\s\"'<>,;`()\]}][^\s\"'<>,;`)\]}]{3,}",
        keep=r"(?i:authorization[\"'\])]{0,3}(?:\s*[:=,]\s*[a-z]{0,2}[\"'`]?|[ \t]+[\"'])"
        r"(?:Bearer|Basic|Token|Digest|ApiKey|Api-Key|Key|SSWS|JWT|OAuth|Splunk|NTLM|Negotiate|GenieKey|Bot"
        r"|PVEAPIToken)[ =](?:token=)?[\"']?)",
    ),
    rule("aws-signature", "aws4-hmac", r"[0-9a-f]{64}", keep=r"AWS4-HMAC-SHA256[^\n\"]{0,300}?Signature="),
    rule(
        "bearer-token",
        "bearer",
        r"[A-Za-z0-9._~+/-]{12,}={0,2}",
        keep=r"(?i:bearer[ :=,]\s*[\"']?)",
        random=True,
    ),
    rule("basic-auth", "basic", r"[A-Za-z0-9+/]{8,}={0,2}", keep=r"(?i:basic )"),
    rule(
        "netrc-password",
        "login",
        r"[^\s\"'`\\]+",
        keep=r"(?i:(?:machine\s+[^\s=]+|default)\s+login\s+[^\s=]+\s+(?:account\s+\S+\s+)?password\s+)",
    ),
    rule(
        "pgpass-password",
        ":",
        r"(?:[^\s:\"'\\]|\\[:\\])+",
        keep=r"(?m:^|[\s\"'])[\w.*-]{1,80}:(?:\d{4,5}|\*):[\w*-]{1,64}:[\w*.-]{1,64}:",
        until=r"(?m:$|[\s\"'\\])",
        glued=True,
    ),
    rule(
        "mail-password",
        ":",
        r"[^\s\"'\\]{6,}",
        keep=r"(?m:^|[\s\"'])\[?(?:[\w-]+\.)+[A-Za-z]{2,24}\]?:\d{2,5}[ \t]+[\w.@+-]{1,64}:",
        until=r"(?m:$|[\s\"'\\])",
        random=True,
        glued=True,
    ),
    rule(
        "inline-password",
        "<auth-user-pass>",
        r"[^\s<][^\n<]*",
        keep=r"<auth-user-pass>[ \t]*\n[ \t]*[^\s<][^\n<]{0,127}\n[ \t]*",
        until=r"\n?[ \t]*</auth-user-pass>",
        glued=True,
    ),
    rule(
        "aws-secret-key",
        "akia asia",
        r"[A-Za-z0-9/+]{40}",
        keep=r"(?:AKIA|ASIA)[A-Z0-9]{16}[\"'`]?\s{0,4}(?:[,:;|/+&\s]|(?i:and|und|et|y|e|with)[ \t])\s{0,4}[\"'`]?",
        until=r"(?:[^A-Za-z0-9/+=]|$)",
        random=True,
    ),
    rule(
        "directive-password",
        "bindpw rootpw adminpw userpw authpw replpw bindpasswd authtok",
        r"[^\s\"'-][^\s\"']*",
        keep=r"(?i:(?:(?:bind|root|admin|user|auth|repl)pw|bindpasswd|ldap_default_authtok)[ \t]+(?:--\w+[ \t]+)*[\"']?)",
    ),
    rule(
        "directive-password",
        "password secret",
        SIGNED,
        keep=r"(?i:(?:(?:username|user|login)[ \t]+\S+[ \t]+(?:privilege[ \t]+\d+[ \t]+)?|enable[ \t]+)"
        r"(?:password|secret)[ \t]+(?:\d[ \t]+)?[\"']?)",
    ),
    rule(
        "directive-password",
        "pass",
        SIGNED,
        keep=r"(?m:^)[ \t]*(?i:(?:quote[ \t]+)?pass|(?:auth|smtp|imap|db|user|root|admin)_pass|(?:\w+_)?(?:password|passwd"
        r"|passphrase))[ \t]+[\"']?",
        until=r"[\"']?[ \t]*(?m:$)",
        glued=True,
    ),
    rule(
        "directive-password", "community", r"[^\s\"']+", keep=r"(?i:(?:snmp-server[ \t]+community|r[ow]community6?)[ \t]+[\"']?)"
    ),
    # What a person reads in a message: a word with a number in its middle is no word of the sentence.
    rule(
        "told-password",
        "password passphrase passcode",
        r"(?:[A-Za-z]+[0-9]{2,}[A-Za-z0-9!@#$%^&*]{2,}|[0-9]+[A-Za-z]{2,}[0-9][A-Za-z0-9]{2,})",
        keep=r"(?i:(?:with|using|and|the|new|temporary|initial|default)[ \t]+(?:password|passphrase|passcode)[ \t]+[\"']?)",
    ),
    rule(
        "told-password",
        "password passphrase",
        r"[^\s\"',;.]{4,}[^\s\"',;]*",
        keep=r"(?i:(?:password|passphrase)[^\n.:=\"']{0,40}[ \t](?:reset|set|changed|rotated)[ \t]+to[ \t:]+[\"']?)",
        random=True,
    ),
    rule(
        "typed-password",
        "pass",
        r"[^\"'\n]+",
        keep=r"(?i:\b(?:fill|type|send_?keys|set_?value|fill_?field|fill_?in|type_?text|enter_?text|input_text)[( ][ \t]*"
        r"(?:\"[^\"\n]{0,80}pass[^\"\n]{0,40}\"|'[^'\n]{0,80}pass[^'\n]{0,40}'|`[^`\n]{0,80}pass[^`\n]{0,40}`)[ \t]*,[ \t]*"
        r"(?:(?:with|text|value):[ \t]*)?[\"'`])",
        glued=True,
    ),
    # What a test types into a field that it has kept, or looked for in a line before.
    rule(
        "typed-password",
        "pass",
        r"[^\"'\n]+",
        keep=r"(?i:find_?element\w{0,12}\([^\n]{0,60}?pass[^\n]{0,30}\);?[ \t]*\n(?:[^\n]{0,80}\n){0,2}?[^\n(]{0,48}"
        r"\.(?:send_?keys|fill|type|set_?value)\([ \t]*[\"'])",
        odd=True,
        glued=True,
    ),
    rule(
        "typed-password",
        "pass",
        r"[^\"'\n]+",
        keep=r"(?i:pass(?:word|wd|phrase|code)?_?(?:input|field|box|entry|el|element|locator|textbox)\w{0,8}(?:\(\))?(?:\.first|\.last)?"
        r"\.(?:send_?keys|fill|type|set_?value|set|type_?text|enter_?text|press_?sequentially)\([ \t]*[\"'])",
        odd=True,
        glued=True,
    ),
    rule(
        "listed-password",
        "<key>",
        r"[^<\n]+",
        keep=r"(?i:<key>[^<\n]{0,40}(?:password|passphrase|secret|token|psk)</key>\s{0,40}<string>)",
        glued=True,
    ),
    rule(
        "listed-password",
        "*",
        r"[^\s\"'*]+",
        keep=r"(?m:^)[\"']?[\w.@\\-]{1,64}[\"']?[ \t]+\*[ \t]+[\"']?",
        until=r"[\"']?[ \t]+\*[ \t]*(?m:$)",
        glued=True,
    ),
    rule(
        "userlist-password",
        '"',
        r"[^\s\"]{8,}",
        keep=r"(?m:^)\"[\w.-]{1,64}\" \"",
        until=r"\"[ \t]*(?m:$)",
        glued=True,
    ),
    rule(
        "protocol-password",
        "login",
        r"[^\s\"']{4,}",
        keep=r"(?m:^|[ >])[A-Za-z]{0,2}\d{1,4}[ \t]LOGIN +[\"']?[\w.@+-]+[\"']? +[\"']?",
        glued=True,
    ),
    rule(
        "protocol-password",
        "auth",
        r"[^\s\"']{8,}",
        keep=r"(?m:^)(?:>[ \t]*|\d[\d.:]*>[ \t]*)?AUTH[ \t]+",
        random=True,
        glued=True,
    ),
    rule("protocol-password", "auth", r"[^\s\"']{8,}", keep=r"(?i:[\"']auth[\"'],[ \t]*[\"'])", random=True, glued=True),
    rule(
        "typed-password",
        "pass pwd",
        r"[^\"'\n]+",
        keep=r"(?i:(?:password|passwd|passphrase|passwort|pass|pwd)[\w-]{0,24}[\"'\])]{1,4}(?:\.(?:first|last)(?:\(\))?)?\s{0,12}"
        r"\.(?:send_?keys|fill|type|set_?value|input|press_sequentially)\([ \t]*[\"'])",
        glued=True,
    ),
    # What a test types into the field for a number that somebody knows by heart.
    rule(
        "pin",
        "pin otp passcode",
        r"\d{4,12}",
        start=r"(?i:(?:pin|otp|passcode)[\w-]*[\"'\])])",
        keep=r"(?i:\b(?:pin|otp|passcode)(?:[_-]?(?:code|input|field))?[\"'\])]{1,4}(?:\.(?:first|last)(?:\(\))?)?\s{0,12}"
        r"(?:\.(?:send_?keys|fill|type|set_?value|input|press_?sequentially)\([ \t]*|,[ \t]*)[\"'])",
        until=r"[\"']",
    ),
    rule(
        "pin",
        "pin",
        r"\d{4,12}",
        keep=r"(?i:(?:door|card|sim|atm|bank|login|user|access|unlock|device|phone|safe|alarm|gate|puk|admin|security)[ _-]?"
        r"pin(?:[ _-]?code)?[\"']?[ \t]*(?:[:=]|is)[ \t]*[\"']?)",
        until=r"(?:[^\w.:/-]|$)",
    ),
    rule("pin", "pin", r"\d{4,12}", keep=r"(?i:pin(?:[ _-]?code)?[\"']?[ \t]*(?:[:=]|is)[ \t]*[\"']?)", until=r"(?:[^\w.:/-]|$)"),
    rule("code", "otp", r"\d{4,8}", keep=r"(?i:\b[th]?otp(?:[_-]?code)?[\"'][ \t]*:[ \t]*[\"']?)", until=r"(?:[^\w.:/-]|$)"),
    rule(
        "code",
        "your",
        r"\d{4,8}",
        start=r"(?m:^|[ \t*\"'(])\d{4,8}[*\"')]* (?i:is|as) your ",
        keep=r"(?m:^|[ \t*\"'(])",
        until=r"[*\"')]* (?i:is|as) your (?:[\w-]+ ){0,3}(?i:code|otp|pin|passcode)\b",
        glued=True,
    ),
    rule(
        "directive-password",
        ".password .passwd .secret .token",
        SIGNED,
        keep=r"(?m:^)[ \t]*[\w-]{1,64}(?:\.[\w-]{1,64}){0,8}\.(?:password|passwd|secret|token)[ \t]+[\"']?",
        until=r"[\"']?[ \t]*(?m:$)",
        glued=True,
    ),
    rule(
        "connection-password",
        "={",
        r"[^}\n]{4,64}[0-9@#$%^&*!;][^}\n]{1,64}",
        keep=r"(?i:(?:password|pwd)=\{)",
        until=r"\}(?:;|$)",
    ),
    rule(
        "password",
        "random_password",
        r"[^\"\n]{4,}",
        keep=r"random_password(?:\"[^|]{0,200}?\b|[\w.\[\]]{1,80}\.)result\"?[ \t]*[:=][ \t]*\"",
        glued=True,
    ),
    rule("sonar-token", "sonar.login", r"[0-9a-zA-Z_]{16,}", keep=r"sonar\.login[ \t]*[=:][ \t]*[\"']?", glued=True),
    rule("masked-secret", "::add-mask::", r"[^\s\"'$][^\n\"']{3,}", keep=r"::add-mask::", glued=True),
    rule("directive-password", "wpa-psk", r"[^\s\"']+", keep=r"(?i:wpa-psk[ \t]+[\"']?)"),
    rule("directive-secret", "secret", r"[^\s\"';]{12,}", keep=r"(?m:^)[ \t]*secret[ \t]+[\"']?", random=True, glued=True),
    rule(
        "password-hash",
        "$",
        r"\$(?:apr1|[156]|2[abxy]|y|7|argon2(?:id?|d)|scrypt|pbkdf2[\w-]*|bcrypt[\w-]*)\$[./A-Za-z0-9$,=+_-]{20,}",
        glued=True,
    ),
    rule(
        "password-hash",
        "pbkdf2_ bcrypt_ argon2 scrypt",
        r"(?:pbkdf2_sha\d+|bcrypt_sha256|argon2|scrypt)\$[./A-Za-z0-9$,=+_-]{30,}",
    ),
    rule(
        "password-hash",
        "{sha} {ssha {md5} {smd5} {crypt}",
        r"\{(?:SHA|SSHA|SSHA256|SSHA512|MD5|SMD5|CRYPT)\}[A-Za-z0-9+/=$.]{12,}",
        glued=True,
    ),
)
