"""Secrets known by where they stand: key blocks, URLs, headers, commands, hashes."""

from decklog.redact.rules.rule import Rule, rule

_BODY_LINE = r"(?:[A-Za-z0-9+/=]{8,}|[A-Z][A-Za-z-]+: [^\n\"'\\]{0,120}|=[A-Za-z0-9+/]{4})"
_LINE_LEAD = r"[\s>#*|+-]*"

KEY_BLOCKS: tuple[Rule, ...] = (
    rule(
        "private-key",
        "-----begin",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[A-Za-z0-9+/=\s:,.;()@>#*|<_]|-[^-])*-{5,6}END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        rf"|(?:{_LINE_LEAD}{_BODY_LINE})+)",
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
        "putty-private-key",
        "putty-user-key-file",
        r"PuTTY-User-Key-File-\d:(?:[A-OQ-Za-z0-9+/=\s:,.@_-]|P[^u\"'\\]|Pu[^T\"'\\])*?"
        r"(?:Private-MAC: [0-9a-f]+|Private-Lines: \d+[A-Za-z0-9+/=\s]*)",
    ),
    rule("jwt", "eyj", r"eyJ[\w-]{8,}={0,2}\.eyJ[\w-]{8,}={0,2}(?:\.[\w-]*={0,2})?|eyJ[\w-]{8,}(?:\.[\w-]*){4}"),
    rule(
        "jwk-private",
        '"d" "dp" "dq" "qi" "k" "p" "q"',
        r"[\w-]{40,}",
        keep=r'"(?:d|dp|dq|qi|k|p|q)"\s*:\s*"',
        glued=True,
    ),
    rule("bitcoin-key", "xprv yprv zprv tprv", r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{90,}"),
    rule(
        "seed-phrase",
        "phrase mnemonic",
        r"(?:[a-z]{3,8} ){11,23}[a-z]{3,8}\b",
        keep=r"(?i:(?:mnemonic|(?:seed|recovery|backup)[ _-]?phrase)\w*[\"']?\s*[:=]\s*[\"']?)",
    ),
)

_USER = r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s/@:\"'<>?#]{0,128}:"
_HOST = r"[\w.-]+(?:[:/?,;\s\"'<>`)\]}\\]|$)"

# What is no word of a sentence: it has a digit or a sign in it.
_SIGNED = r"[^\s\"'\\]*[0-9@#$%^&*!][^\s\"'\\]*"

PLACES: tuple[Rule, ...] = (
    rule(
        "url-password",
        "://",
        r"[^\s\"'<>`/?#]{1,512}",
        keep=_USER,
        until=rf"@(?:[$%{{*<\[]|{_HOST})",
    ),
    # Signs that end a host are allowed in a password too, as long as a host comes after it.
    rule("url-password", "://", r"[^\s\"'<>`]{1,96}?", keep=_USER, until=f"@{_HOST}"),
    rule(
        "url-token",
        "://",
        r"[\w.~%-]{20,}",
        keep=r"[A-Za-z][A-Za-z0-9+.-]{1,30}://",
        until=r"@[\w.-]",
        random=True,
    ),
    rule(
        "oracle-password",
        "jdbc:oracle sqlplus",
        r"[^\s\"'@/]+",
        keep=r"(?i:(?:jdbc:oracle:thin:|sqlplus(?: -\w+)* )[\w$]+/)",
        until="@",
    ),
    rule(
        "signature",
        "sig= signature= security-token= hmac=",
        r"[A-Za-z0-9%+/=_-]{16,}",
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
        r"[^\s\"'<>,;`)\]}][^\s\"'<>,;`)\]}]{3,}",
        keep=r"(?i:authorization[\"'\])]{0,3}\s*[:=,]\s*[a-z]{0,2}[\"'`]?"
        r"(?:Bearer|Basic|Token|Digest|ApiKey|Api-Key|Key|SSWS|JWT|OAuth|Splunk|NTLM|Negotiate|GenieKey|Bot"
        r"|PVEAPIToken)[ =](?:token=)?[\"']?)",
    ),
    rule("aws-signature", "aws4-hmac", r"[0-9a-f]{64}", keep=r"AWS4-HMAC-SHA256[^\n\"]{0,300}?Signature="),
    rule(
        "bearer-token",
        "bearer",
        r"[A-Za-z0-9._~+/-]{12,}={0,2}",
        keep=r"(?i:bearer[ :=]\s*[\"']?)",
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
        r"[^\s:\"'\\]+",
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
        "aws-secret-key",
        "akia asia",
        r"[A-Za-z0-9/+]{40}",
        keep=r"(?:AKIA|ASIA)[A-Z0-9]{16}[\"']?\s{0,4}[,:;|/\s]\s{0,4}[\"']?",
        until=r"(?:[^A-Za-z0-9/+=]|$)",
        random=True,
    ),
    rule(
        "directive-password",
        "bindpw rootpw adminpw userpw authpw replpw bindpasswd",
        r"[^\s\"'-][^\s\"']*",
        keep=r"(?i:(?:(?:bind|root|admin|user|auth|repl)pw|bindpasswd)[ \t]+(?:--\w+[ \t]+)*[\"']?)",
    ),
    rule(
        "directive-password",
        "password secret",
        _SIGNED,
        keep=r"(?i:(?:(?:username|user|login)[ \t]+\S+[ \t]+(?:privilege[ \t]+\d+[ \t]+)?|enable[ \t]+)"
        r"(?:password|secret)[ \t]+(?:\d[ \t]+)?[\"']?)",
    ),
    rule(
        "directive-password",
        "pass",
        _SIGNED,
        keep=r"(?m:^)[ \t]*(?i:password|passwd|pass)[ \t]+[\"']?",
        until=r"[\"']?[ \t]*(?m:$)",
        glued=True,
    ),
    rule("directive-password", "community", r"[^\s\"']+", keep=r"(?i:snmp-server[ \t]+community[ \t]+)"),
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

# A bounded gap: an open one would make every hit on a long line look to the end of that line.
_QUIET = r"[^\n|;&]{0,120}?\s"

COMMANDS: tuple[Rule, ...] = (
    rule(
        "command-password",
        "curl wget http xh hurl",
        r"[^\s\"'\\]+",
        keep=rf"(?:curl|wget|https?|xh|hurl)[ \t](?:{_QUIET})?"
        r"(?:-u|--user|--proxy-user|-U|-a|--auth)[ =]?[\"']?[^\s:\"'/]+:",
    ),
    rule("command-password", "sshpass", r"[^\s\"'-][^\s\"']*", keep=r"sshpass\s+-p\s*[\"']?"),
    rule(
        "command-password",
        "mysql mariadb",
        r"[^\s\"'-][^\s\"']*",
        keep=rf"(?:mysql|mysqldump|mysqladmin|mysqlimport|mariadb)\b{_QUIET}-p[\"']?",
    ),
    rule(
        "command-password",
        "redis",
        r"[^\s\"'-][^\s\"']*",
        keep=rf"redis-(?:cli|benchmark)\b{_QUIET}(?:-a|--pass)[ =][\"']?",
    ),
    rule(
        "command-password",
        "login mongo",
        r"[^\s\"'-][^\s\"']*",
        keep=rf"(?:(?:docker|podman|oc|az|nerdctl|registry)\s+login|mongo\w*)\b{_QUIET}-p[ =][\"']?",
    ),
    rule("command-password", "ldap", r"[^\s\"'-][^\s\"']*", keep=rf"ldap\w+\b{_QUIET}-w\s+[\"']?"),
    rule(
        "command-password",
        "sqlcmd zip bcp",
        r"[^\s\"'-][^\s\"']*",
        keep=rf"(?:sqlcmd|bcp|zip|unzip)\b{_QUIET}-P\s+[\"']?",
    ),
    rule("command-password", "7z", r"[^\s\"'-][^\s\"']*", keep=rf"7za?\b{_QUIET}-p[\"']?"),
    rule(
        "command-password",
        "smb rpcclient mount",
        r"[^\s\"'-][^\s\"']*",
        keep=rf"(?:smbclient|rpcclient|mount)\b{_QUIET}-U\s+[\"']?[^\s%\"']+%",
    ),
    rule(
        "command-password",
        "net",
        r"[^\s\"'/-][^\s\"']*",
        keep=r"(?i:net use[ \t]+(?:[^\n]{0,120}?/user:\S+|(?:\w:[ \t]+)?\\+\S+)[ \t]+[\"']?)",
    ),
    rule("command-password", "net", _SIGNED, keep=r"(?i:net user[ \t]+\w+[ \t]+[\"']?)"),
    rule(
        "command-password",
        "rdesktop psexec winrm hydra mosquitto_ useradd usermod",
        r"[^\s\"'-][^\s\"']*",
        keep=rf"(?:rdesktop|psexec|evil-winrm|hydra|mosquitto_(?:pub|sub)|useradd|usermod)\b{_QUIET}-[pP][ \t]+[\"']?",
    ),
    rule("command-password", "rar", r"[^\s\"'-][^\s\"']*", keep=rf"(?:un)?rar\b{_QUIET}-h?p[\"']?"),
    rule("command-password", "freerdp", r"[^\s\"'-][^\s\"']*", keep=rf"[wx]?l?freerdp\b{_QUIET}/p:[\"']?"),
    rule("command-password", "openssl", r"[^\s\"'-][^\s\"']*", keep=rf"openssl[ \t]+enc\b{_QUIET}-k[ \t]+[\"']?"),
    rule(
        "command-password",
        "nmcli rclone",
        r"[^\s\"'-][^\s\"']*",
        keep=rf"(?:nmcli\b{_QUIET}password|rclone[ \t]+config\b{_QUIET}pass)[ \t]+[\"']?",
    ),
    rule(
        "command-password",
        "rabbitmqctl wpa_passphrase",
        r"[^\s\"'-][^\s\"']*",
        keep=r"(?:rabbitmqctl[ \t]+(?:add_user|change_password)|wpa_passphrase)[ \t]+[\"']?[^\s\"'-]\S*[ \t]+[\"']?",
    ),
    rule(
        "command-password",
        "htpasswd",
        r"[^\s\"'-][^\s\"']*",
        keep=r"htpasswd[ \t]+-[a-zA-Z]*b[a-zA-Z]*[ \t]+(?:[^\s-]\S*[ \t]+)?\S+[ \t]+[\"']?",
    ),
    rule("command-password", "openssl pass:", r"[^\s\"']+", keep=r"-pass(?:in|out)?\s+[\"']?pass:", glued=True),
    rule(
        "command-password",
        "identified",
        r"[^\"']+",
        keep=r"(?:IDENTIFIED|(?i:(?:user|exists|to)\s+\S+\s+identified))(?i:\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?[\"'])",
    ),
    rule(
        "command-password",
        "password",
        r"[^\"'\n]+",
        keep=r"(?i:set\s+password\s+(?:for\s+[^=\n]{1,100}?)?=\s*(?:password\s*\(\s*)?[\"']"
        r"|(?:with|login|encrypted|user\s+\S+)\s+password\s+[\"'])",
    ),
    rule(
        "command-password",
        "auth",
        r"[^\"'\n]+",
        keep=r"(?:auth\s*=\s*\(|(?:HTTPBasicAuth|HTTPDigestAuth|BasicAuth|basic_auth|basicAuth)\()\s*[\"'][^\"'\n]+[\"'],\s*[\"']",
    ),
    rule(
        "command-password",
        "requirepass",
        r"[^\s\"']+",
        keep=r"requirepass\s+[\"']?",
    ),
    rule(
        "command-password",
        "securestring",
        r"[^\"'\n]+",
        keep=r"(?i:ConvertTo-SecureString\s+(?:-String\s+)?[\"'])",
    ),
    rule(
        "command-password",
        "echo printf",
        r"[^\s\"'|][^\"'|\n]{0,120}?",
        keep=r"(?:echo|printf)[ \t]+(?:-n[ \t]+)?[\"']?",
        until=r"[\"']?[ \t]*\|[ \t]*(?:sudo -S|chpasswd|passwd\b"
        r"|(?:docker|podman|helm|oras|skopeo|crane)\b[^\n|]{0,120}--password-stdin)",
    ),
    rule("command-secret", "secret", r"[^\s\"']+", keep=rf"secret set\b{_QUIET}(?:--body|-b)[ =][\"']?"),
)
