"""Secrets among the arguments of everyday commands, and in what a pipe gives them."""

from decklog.redact.rules.rule import SIGNED, Rule, rule

# A bounded gap: an open one would make every hit on a long line look to the end of that line.
_QUIET = r"[^\n|;&]{0,120}?\s"

# Names of users there have backslashes, which are no escapes: they are looked for in the text as it is.
AS_WRITTEN: tuple[Rule, ...] = (
    rule(
        "command-password",
        "net",
        r"[^\s\"'/\\-][^\s\"'\\]*",
        keep=r"(?i:net use[ \t]+(?:[^\n]{0,120}?/user:\S+|(?:(?:\w:|\*)[ \t]+)?\\+\S+)[ \t]+\\*[\"']?)",
    ),
    rule("command-password", "net", SIGNED, keep=r"(?i:net user[ \t]+[\w.\\-]+[ \t]+\\*[\"']?)"),
    rule(
        "command-password",
        "net",
        r"[^\s\"'/\\*-][^\s\"'\\]*",
        keep=r"(?i:net user[ \t]+[\w.\\-]+[ \t]+\\*[\"']?)",
        until=r"[\"']?[ \t]+/(?i:add)\b",
    ),
)

COMMANDS: tuple[Rule, ...] = (
    rule("command-password", "lftp", r"[^\s\"',]+", keep=rf"lftp\b(?:{_QUIET}|[ \t]+)-u[ \t]*[\"']?[^\s,\"']+,[\"']?"),
    rule("command-password", "rclone", r"[^\s\"'-][^\s\"']*", keep=r"rclone[ \t]+obscure[ \t]+[\"']?"),
    rule(
        "command-secret",
        "user-secrets",
        r"[^\s\"'-][^\s\"']*",
        keep=r"user-secrets[ \t]+set[ \t]+[\"']?[\w.:-]*"
        r"(?i:key|secret|token|password|pwd|connectionstring)[\w.:-]*[\"']?[ \t]+[\"']?",
    ),
    # Each of the two has a rule of its own: what one has taken the other cannot begin with.
    rule("command-password", "snmp", r"[^\s\"'-][^\s\"']*", keep=rf"snmp\w+\b{_QUIET}-[AXc][ \t]+[\"']?"),
    rule(
        "command-password",
        "-x",
        r"[^\s\"'-][^\s\"']{7,}",
        keep=r"[ \t]-x[ \t]+(?:DES|AES(?:-?\d{3}C?)?)[ \t]+-X[ \t]+[\"']?",
        glued=True,
    ),
    rule("command-password", "connect", r"[^\s\"';]{4,}", keep=r"(?i:connect to \S+ user \S+ using[ \t]+[\"']?)", odd=True),
    rule("command-password", ".logon", r"[^\s\"';,]{4,}", keep=r"(?i:\.logon[ \t]+[\w.-]+/[\w.$-]+,)", glued=True),
    rule("command-password", "-passwd", r"[^\s\"'/-][^\s\"']{3,}", keep=r"dscl[ \t]+\S+[ \t]+-passwd[ \t]+/\S+[ \t]+[\"']?"),
    rule(
        "command-password",
        "<<<",
        r"[^\s\"']{4,}",
        keep=r"(?:stdin[-_]pass(?:word|wd)?|pass(?:word|wd)?[-_](?:on[-_])?stdin)\b[^\n|;&]{0,80}?<<<[ \t]*[\"']?",
        odd=True,
        glued=True,
    ),
    rule(
        "command-password",
        "reset- racadm",
        r"[^\s\"'-][^\s\"']{3,}",
        keep=r"(?:reset-admin-password|racadm[ \t]+set[ \t]+\S+\.Password)[ \t]+[\"']?",
        odd=True,
    ),
    # The password of a reader and that of the owner.
    rule("command-password", "--encrypt", r"[^\s\"'-][^\s\"']{3,}", keep=r"qpdf\b[^\n|;&]{0,80}?--encrypt[ \t]+[\"']?"),
    rule(
        "command-password",
        "--encrypt",
        r"[^\s\"'\[][^\s\"']{3,}",
        keep=r"--encrypt[ \t]+\S+[ \t]+[\"']?",
        until=r"[\"']?[ \t]+(?:40|128|256)\b",
        glued=True,
    ),
    rule(
        "command-secret",
        "secret-set-value",
        r"[A-Za-z0-9+/]{8,}={0,2}",
        keep=r"secret-set-value\b[^\n|;&]{0,100}?--base64[ =][\"']?",
    ),
    # Of any program: what it reads from a here-string is a key if it is random and so long.
    rule("option-key", "<<<", r"[A-Za-z0-9_~+/-]{24,}={0,2}", keep=r"<<<[ \t]*[\"']?", until=r"(?:[\s\"']|$)", glued=True),
    rule("command-password", "addauth", r"[^\s\"']{4,}", keep=r"addauth[ \t]+digest[ \t]+[\"']?[\w.@-]{1,64}:"),
    rule(
        "command-password",
        "attach",
        r"[^\"'\n]+",
        keep=r"(?i:attach[ \t]+(?:database[ \t]+)?[^\n;]{1,120}?[ \t]as[ \t]+\w+[ \t]+key[ \t]+[\"'])",
    ),
    rule(
        "command-password",
        "kinit cryptsetup passwd gpg ssh-add sudo su",
        r"[^\s\"']+",
        keep=rf"(?:kinit|cryptsetup|(?:ch)?passwd|gpg|ssh-add|sudo|su)\b(?:{_QUIET}|[ \t]+)"
        r"<<<[ \t]*[\"']?(?:[a-z][\w-]{0,31}:)?",
    ),
    rule("command-password", "ssh-keygen", r"[^\s\"'-][^\s\"']*", keep=rf"ssh-keygen\b{_QUIET}-[NP][ \t]+[\"']?"),
    rule("command-password", "schtasks", r"[^\s\"'/-][^\s\"']*", keep=rf"(?i:schtasks)\b{_QUIET}/(?i:rp)[ \t]+[\"']?"),
    rule(
        "command-password",
        "samba-tool",
        r"[^\s\"'-][^\s\"']*",
        keep=r"samba-tool[ \t]+user[ \t]+(?:create|add)[ \t]+[^\s-]\S*[ \t]+[\"']?",
    ),
    rule(
        "command-password",
        "exec dump impacket",
        r"[^\s\"'@]+",
        keep=r"(?:impacket-\w+|(?:\w+exec|secretsdump)\.py)[ \t]+[\"']?[\w.-]+/[\w.$-]+:[\"']?",
        until=r"[\"']?@",
    ),
    rule(
        "command-password",
        "expect",
        r"[^\s\"'\\}]{4,}",
        keep=r"(?i:expect[^\n]{0,40}pass(?:word|phrase)[^\n]{0,40}send[ \t]+(?:--[ \t]+)?[\"{])",
    ),
    rule("command-password", "identify", r"[^\s\"']{4,}", keep=r"(?i:nickserv[ \t:]+identify[ \t]+[\w\[\]|^`{}-]{1,32}[ \t]+)"),
    rule("command-password", "identify", r"[^\s\"']{4,}", keep=r"(?i:nickserv[ \t:]+identify[ \t]+)"),
    # An option takes a user, a password and a host, as an address does without what it is an address of.
    rule(
        "command-password",
        "-",
        r"[^\s\"'@/]{4,}",
        start=r"[ \t]-[A-Za-z-]+[ =][\"']?[A-Za-z][\w.+-]*:[^\s\"'@/]+@",
        keep=r"[ \t]-{1,2}[A-Za-z][A-Za-z-]{0,16}[ =][\"']?[A-Za-z][\w.+-]{0,32}:",
        until=r"@[A-Za-z0-9][\w-]*\.[A-Za-z]",
        odd=True,
        glued=True,
    ),
    rule(
        "command-token",
        "-token",
        r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        keep=r"(?:set-(?:agent|server|api)-token|[ \t]-{1,2}token)[ \t]+(?:[a-z]+[ \t]+)?[\"']?",
        glued=True,
    ),
    rule(
        "command-password",
        "curl wget http xh hurl etcdctl",
        r"[^\s\"'\\]+",
        keep=rf"(?:curl|wget|https?|xh|hurl|etcdctl)[ \t](?:{_QUIET})?"
        r"(?:-[a-zA-Z]{0,5}u|--user|--proxy-user|-U|-a|--auth)[ =]?[\"']?[^\s:\"'/]+:[\"']?",
    ),
    # A token in the place of the user, with no password behind it.
    rule(
        "command-token",
        "curl",
        r"[A-Za-z0-9_-]{20,80}",
        keep=rf"curl[ \t](?:{_QUIET})?(?:-[a-zA-Z]{{0,5}}u|--user)[ =]?[\"']?",
        until=r":[\"']?(?:\s|\\|$)",
        random=True,
    ),
    # A script for ftp: a user and a password, and what is done then.
    rule(
        "command-password",
        "user",
        r"[^\s\"']{4,}",
        start=r"(?m:^|[\"'])user[ \t]+[\w.@-]+[ \t]+[^\s\"']+[ \t]*\n",
        keep=r"(?m:^|[\"'])user[ \t]+[\w.@-]{1,40}[ \t]+",
        until=r"[ \t]*\n[ \t]*(?:bin(?:ary)?|ascii|m?put|m?get|l?cd|ls|dir|quit|bye|prompt|passive|mkdir)\b",
        odd=True,
        glued=True,
    ),
    rule("command-password", "sshpass", r"[^\s\"'-][^\s\"']*", keep=r"sshpass\s+-p\s*[\"']?"),
    rule(
        "command-password",
        "mysql mariadb",
        r"[^\s\"'-][^\s\"']*",
        # A script that shows its commands quotes the whole option.
        keep=rf"(?:mysql|mysqldump|mysqladmin|mysqlimport|mariadb)\b{_QUIET}[\"']?-p[\"']?",
    ),
    rule("command-password", "mysqladmin", r"[^\s\"'-][^\s\"']*", keep=rf"mysqladmin\b(?:{_QUIET}|[ \t]+)password[ \t]+[\"']?"),
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
        "sqlcmd zip bcp isql ipmitool",
        r"[^\s\"'-][^\s\"']*",
        keep=rf"(?:sqlcmd|bcp|zip|unzip|t?isql|ipmitool)\b{_QUIET}-P\s+[\"']?",
    ),
    rule("command-password", "7z", r"[^\s\"'-][^\s\"']*", keep=rf"7za?\b{_QUIET}-p[\"']?"),
    rule(
        "command-password",
        "smb rpcclient mount winexe",
        r"[^\s\"'-][^\s\"']*",
        keep=rf"(?:smbclient|smbget|rpcclient|mount|winexe)\b{_QUIET}-U\s+[\"']?[^\s%\"']+%",
    ),
    rule(
        "command-password",
        "rdesktop psexec winrm hydra mosquitto_ useradd usermod cqlsh crackmapexec netexec twine ncftp",
        r"[^\s\"'-][^\s\"']*",
        keep=rf"(?:rdesktop|psexec|evil-winrm|hydra|mosquitto_(?:pub|sub)|useradd|usermod"
        rf"|cqlsh|crackmapexec|netexec|twine|ncftp\w*)\b{_QUIET}-[pP][ \t]+[\"']?",
    ),
    rule(
        "command-password",
        "security",
        r"[^\s\"'-][^\s\"']*",
        keep=rf"security[ \t]+\w+-(?:generic|internet)-password\b{_QUIET}-w[ \t]+[\"']?",
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
        "htpasswd mosquitto_passwd",
        r"[^\s\"'-][^\s\"']*",
        keep=r"(?:htpasswd|mosquitto_passwd)[ \t]+(?:-[a-zA-Z0-9]+[ \t]+)*-[a-zA-Z]*b[a-zA-Z]*[ \t]+(?:-[a-zA-Z0-9]+[ \t]+)*"
        r"(?:[^\s-]\S*[ \t]+)?[^\s-]\S*[ \t]+[\"']?",
    ),
    rule("command-password", "openssl pass:", r"[^\s\"']+", keep=r"-pass(?:in|out)?\s+[\"']?pass:", glued=True),
    rule(
        "command-password",
        "identified",
        r"[^\"']+",
        keep=r"(?:IDENTIFIED|(?i:(?:user|exists|to)\s+\S+\s+identified))(?i:\s+(?:with\s+\S+\s+)?(?:by"
        r"|as)\s+(?:password\s+)?[\"'])",
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
        keep=r"(?:auth\s*=\s*\(|(?:HTTPBasicAuth|HTTPDigestAuth|BasicAuth|basic_auth"
        r"|basicAuth)\()\s*[\"'][^\"'\n]+[\"'],\s*[\"']",
    ),
    rule(
        "app-password",
        "pass",
        r"[a-z]{4}(?: [a-z]{4}){3}",
        start=r"(?i:pass(?:word|wd)?[\"']?[ \t]*[:=][ \t]*[\"']?)[a-z]{4} [a-z]{4} ",
        keep=r"(?i:pass(?:word|wd)?[\"']?[ \t]*[:=][ \t]*[\"']?)",
        until=r"(?:[\"'\s]|$)",
        glued=True,
    ),
    rule(
        "command-password",
        "requirepass masterauth",
        # The number of a line in a server's answer is none.
        r"[^\s\"'0-9][^\s\"']*|[0-9]+[^\s\"'0-9)][^\s\"']*|[0-9]{2,}",
        keep=r"(?:requirepass|masterauth)[ \t]+[\"']?",
    ),
    # A server's answer: the name of the setting, and its value.
    rule(
        "command-password",
        "requirepass masterauth",
        r"[^\"\n]{4,}",
        keep=r"(?:requirepass|masterauth)\"[ \t]*\n[ \t]*2\)[ \t]+\"",
        until=r"\"",
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
        keep=r"(?:echo|printf)[ \t]+(?:-n[ \t]+)?(?:[\"'](?:%s\s{0,2}){1,3}[\"'][ \t]+)?[\"']?",
        # Of any program: the option says that what comes in is the password.
        until=r"[\"']?[ \t]*\|[ \t]*(?:sudo -S|(?:sudo[ \t]+)?chpasswd|passwd\b"
        r"|[\w./-]+\b[^\n|]{0,120}--(?:pass(?:word|wd)?-(?:on-|from-)?stdin|stdin-pass(?:word)?)\b)",
    ),
    # The account and its password; where it is asked for, nothing follows the account.
    rule(
        "command-password",
        "smbpasswd",
        r"[^\s\"'-][^\s\"']{3,}",
        start=r"smbpasswd[ \t]+-[a-zA-Z][ \t]",
        keep=r"smbpasswd[ \t]+(?:-[a-zA-Z][ \t]+){1,4}(?:-r[ \t]+\S+[ \t]+)?[\w.$-]{1,64}[ \t]+[\"']?",
        odd=True,
    ),
    # What a directory's manager and its administrator get in by; each has a rule of its own.
    rule(
        "command-password",
        "ipa-",
        r"[^\s\"'-][^\s\"']*",
        start=r"ipa-[a-z-]+[ \t]",
        # A client is given the name of who lets it in by this option.
        keep=rf"ipa-(?:server|replica|csreplica|dns|ca|kra|adtrust)-[a-z]+\b(?:{_QUIET}|[ \t]+)-p[ \t]+[\"']?",
    ),
    rule(
        "command-password",
        "ipa-",
        r"[^\s\"'-][^\s\"']*",
        start=r"ipa-[a-z-]+[ \t]",
        keep=rf"ipa-[a-z]+-[a-z]+\b(?:{_QUIET}|[ \t]+)-[aw][ \t]+[\"']?",
    ),
    # The key of a zone, behind its name and how it signs.
    rule(
        "command-secret",
        "-y",
        r"[A-Za-z0-9+/]{16,}={0,2}",
        start=r"[ \t]-y[ \t]*[\"']?[\w.-]+:",
        keep=r"[ \t]-y[ \t]*[\"']?(?:hmac-[a-z0-9-]{3,12}:)?[\w.-]{1,80}:",
        until=r"(?:[\s\"':]|$)",
        random=True,
        glued=True,
    ),
    # A runner is registered by letters in capitals, of which no name has so many without a break. A token to go on with the
    # next page is called after that.
    rule(
        "command-token",
        "-token",
        r"[A-Z0-9]{24,64}",
        keep=r"[ \t]--(?:(?:registration|runner|auth|access|api|join|bootstrap)-)?token[ =][\"']?",
        until=r"(?:[\s\"']|$)",
        glued=True,
    ),
    rule(
        "command-password",
        "command cmd",
        r"[^\s\"'$`|;&]+",
        keep=r"(?i:pass(?:word|phrase)?[-_]?(?:command|cmd)[ =:]{1,3}[\"']?(?:echo|printf)[ \t]+"
        r"(?:-n[ \t]+|'?%s'?[ \t]+)?[\"']?)",
        until=r"(?:[\s\"'|;&]|$)",
        glued=True,
    ),
    rule("command-secret", "secret", r"[^\s\"']+", keep=rf"secret set\b{_QUIET}(?:--body|-b)[ =][\"']?"),
)
