"""Secrets in what tools of agents, stores of passwords and mail servers write down, each beside what it belongs to."""

from decklog.redact.rules.rule import Rule, rule

_ACCOUNT = r"[\w.@+-]{1,80}"

RECORDS: tuple[Rule, ...] = (
    # What an agent types into a field of a page: the field is described before.
    rule(
        "typed-password",
        "element field placeholder selector locator",
        r"[^\"\n]{4,128}",
        keep=r"(?i:\"(?:element|field|placeholder|selector|locator)\"[ \t]*:[ \t]*"
        r"\"[^\"\n]{0,40}\b(?:pass(?:word|wort|code|phrase)?|pwd?|otp|totp|pin)\b[^\"\n]{0,60}\",\s{0,8}"
        r"(?:\"\w{1,16}\"[ \t]*:[ \t]*\"[^\"\n]{0,60}\",\s{0,8}){0,3}\"(?:text|value)\"[ \t]*:[ \t]*\")",
        start=r"\"(?i:element|field|placeholder|selector|locator)\"[ \t]*:[ \t]*\"",
        until=r"\"",
        glued=True,
    ),
    rule(
        "listed-password",
        "<key>",
        r"[^<\n]+",
        start=r"(?i:<key>)",
        keep=r"(?i:<key>[^<\n]{0,40}(?:password|passphrase|secret|token|pin)</key>\s{0,40}<value[^>\n]{0,60}>)",
        glued=True,
    ),
    # A relay, the account there and its password, as Postfix keeps them.
    rule(
        "listed-password",
        "]: :25 :465 :587",
        r"[^\s:]{4,128}",
        start=r"(?m:^)(?:\[[\w.-]+\]:\d|[\w.-]+:(?:25|465|587|2525)[ \t])",
        keep=rf"(?m:^)(?:\[[\w.-]{{1,120}}\]:\d{{1,5}}|[\w.-]{{1,120}}:(?:25|465|587|2525))[ \t]+{_ACCOUNT}:",
        until=r"[ \t]*(?m:$)",
        glued=True,
    ),
    # A user and a password, each in a line of its own.
    rule(
        "listed-password",
        "auth-user-pass",
        r"\S{6,128}",
        start=r"auth-user-pass\b",
        keep=rf"auth-user-pass\b[^\n]{{0,80}}\n[ \t]*{_ACCOUNT}[ \t]*\n[ \t]*",
        until=r"[ \t]*(?m:$)",
        odd=True,
        glued=True,
    ),
    # The same, printed from the file that a tunnel's settings name: one line for the user, one for the password.
    rule(
        "listed-password",
        "auth pass cred login",
        r"\S{6,128}",
        start=r"\bcat[ \t]+[\w./~-]*(?:auth|pass|cred|login)[\w.-]*[ \t]*\n",
        keep=r"\bcat[ \t]+[\w./~-]{0,80}(?:auth|pass|cred|login)[\w-]{0,24}(?:\.(?:txt|conf|cfg|pass|auth|creds?|login|secret))?"
        r"[ \t]*\n[ \t]*[A-Za-z][\w.@+-]{0,79}[ \t]*\n[ \t]*",
        until=r"[ \t]*(?m:$)",
        odd=True,
        glued=True,
    ),
    # Users and passwords in quotes, below the name of the file that has them: all of its lines, from the first password on.
    rule(
        "listed-password",
        "userlist",
        r"[^\"\n]{4,128}(?:\"[ \t]*\n\"[^\"\n]+\"[ \t]+\"[^\"\n]+)*",
        start=r"userlist\.txt\b[^\n]*\n\"",
        keep=r"userlist\.txt\b[^\n]{0,80}\n\"[^\"\n]{1,64}\"[ \t]+\"",
        until=r"\"[ \t]*(?m:$)",
        glued=True,
    ),
    # What a network was joined by, as a system shows it.
    rule(
        "network-password",
        "key",
        r"[^\s\"][^\n\"]{6,61}[^\s\"]",
        keep=r"(?m:^)[ \t]*Key Content[ \t]*:[ \t]+",
        until=r"[ \t]*(?m:$)",
        glued=True,
    ),
    # By which numbers a lock is opened, if the line has one: other combinations are spared.
    rule(
        "lock-code",
        "combination",
        r"\d{1,2}(?:[ \t]?[-/,][ \t]?\d{1,2}){2,4}",
        start=r"(?i:combination[ \t:=])",
        keep=r"(?i:combination(?:[ \t]+(?:of|for|to|on)[ \t][^\n.:=]{0,80}?)?"
        r"(?:[ \t]*[:=]|[ \t]+(?:is|was)(?:[ \t]+(?:now|changed to|set to))?:?)[ \t]*[\"'`]?)",
        until=r"(?:[^\w:/-]|$)",
    ),
    # A comment that goes on in the next line, which begins with the key; spared if it speaks of no key, or of a public one.
    rule(
        "continued-key",
        "is was",
        r"[\w.~+/=-]{20,}",
        keep=r"[ \t](?:is|was):?[ \t]*\n[ \t]*(?:///?|//!|#|\*|--|>)[ \t]*[\"'`]",
        until=r"[\"'`]",
        random=True,
        glued=True,
    ),
    # What it was set to, and for whom; spared if the line speaks of nothing that one gets in by.
    rule(
        "set-password",
        "set",
        r"[^\s\"'`]{6,64}",
        keep=r"(?i:\b(?:re)?set (?:it|them|that|this) to[ \t]+[\"'`])",
        until=r"[\"'`],?[ \t]+for[ \t]+(?:the[ \t]+)?(?i:user|account|login|admin|root)\b",
        odd=True,
    ),
    # A test's variables: the name and what it is, as far from it as from all other names.
    rule(
        "password",
        "pass secret token",
        r"[^\s$%@&\"'\[<{][^\s\"']{3,}",
        start=r"(?i:\$\{[\w ]*(?:pass\w*|secret|token)\}[ \t])",
        keep=r"(?i:\$\{[\w ]{0,40}(?:password|passwd|passphrase|secret|token)\})(?:[ \t]*=)?(?:[ ]{2,}|\t+)",
        until=r"(?:[ \t]*(?m:$)|[\"'])",
        odd=True,
        glued=True,
    ),
    rule(
        "wallet-key",
        "0x",
        r"[0-9a-fA-F]{64}",
        keep=r"(?i:(?:pk|signer|deployer|priv)(?:_key|_pk)?[\"']?[ \t]*[:=][ \t]*[\"']?0x)",
        until=r"(?:[^\w]|$)",
        glued=True,
    ),
    # As long as what a server signs or draws at random; shorter ones number the sessions of anything.
    rule(
        "session",
        "session",
        r"[A-Za-z0-9_-]{40,}",
        keep=r"(?i:[\"']session_?id[\"'][ \t]*:[ \t]*[\"'])",
        random=True,
        glued=True,
    ),
    rule(
        "encryption-key",
        "encryption:",
        r"[A-Za-z0-9+/]{43}=",
        keep=r"encryption:[ \t]*\n[ \t]+key:[ \t]*[\"']?",
        glued=True,
    ),
    rule(
        "defined-password",
        "#define",
        r"[^\"\n\s]{6,128}",
        start=r"#define[ \t]+\w+[ \t]+\"",
        keep=r"#define[ \t]+\w{0,40}(?:PASS|PASSWORD|PASSWD|PASSPHRASE|PSK)[ \t]+\"",
        until=r"\"",
        glued=True,
    ),
    rule(
        "connection-password",
        "keyring.",
        r"[^\"'\n]{4,128}",
        start=r"keyring\.set_password\(",
        keep=r"keyring\.set_password\([ \t]*[^,\n]{1,80},[ \t]*[^,\n]{1,80},[ \t]*[\"']",
        until=r"[\"']",
        glued=True,
    ),
    rule(
        "command-password",
        "signtool",
        r"[^\s\"'/][^\s\"']{3,128}",
        start=r"(?i:signtool)\b",
        keep=r"(?i:signtool)\b[^\n|;&]{0,160}?[ \t]/[pP][ \t]+[\"']?",
    ),
    rule(
        "command-password",
        "conn",
        r"[^\s\"'@/;]{4,128}",
        start=r"(?i:conn(?:ect)?)[ \t]+[\w$.]+/",
        keep=r"(?i:conn(?:ect)?)[ \t]+[\w$.]{1,30}/[\"']?",
        until=r"[\"']?@[\w/.:-]",
        odd=True,
    ),
    # What a domain keeps of each account's password: the older digest and the newer one.
    rule(
        "password-hash",
        ":::",
        r"[0-9a-fA-F]{32}",
        start=r":\d+:[0-9a-fA-F]{32}:[0-9a-fA-F]{32}:::",
        keep=r":\d{1,10}:[0-9a-fA-F]{32}:",
        until=r":::",
        glued=True,
    ),
    rule("code", "g-", r"\d{6}", keep=r"G-", until=r" is your (?:\w+ )?(?:verification|login|sign-in|security) code"),
    rule("aws-session-token", "iqojb3jpz2lu", r"IQoJb3JpZ2lu[A-Za-z0-9+/=]{100,}"),
    rule(
        "code",
        "backup recovery scratch rescue",
        r"[A-Za-z0-9-]{6,24}(?:[\"'],\s{0,12}[\"'][A-Za-z0-9-]{6,24}){0,31}",
        keep=r"(?i:(?:backup|recovery|scratch|rescue)[_-]?codes[\"']?[ \t]*[:=][ \t]*\[\s{0,12}[\"'])",
        until=r"[\"']",
        odd=True,
        glued=True,
    ),
    # A key as numbers, as a network of things is joined by one.
    rule(
        "encryption-key",
        "network_key networkkey network-key",
        r"\d{1,3}(?:,[ \t]*\d{1,3}){15}",
        keep=r"(?i:network[_-]?key[\"']?[ \t]*[:=][ \t]*\[[ \t]*)",
        until=r"[ \t]*\]",
        glued=True,
    ),
    # What a tool for infrastructure keeps of a password that it drew.
    rule("password", "result", r"[^\"\n]{6,}", keep=r"\"result\"[ \t]*:[ \t]*\"", until=r"\",\s{0,40}\"special\"", glued=True),
    rule("otp-seed", "google_authenticator", r"[A-Z2-7]{16,64}", keep=r"google_authenticator[^\n]{0,20}\n[ \t]*", glued=True),
    rule("azure-key", "key1 key2", r"[A-Za-z0-9+/]{86}==", keep=r"\bkey[12][\"']?[ \t]*[:=][ \t]*[\"']?"),
    rule(
        "private-key",
        "key",
        r"0x[0-9a-fA-F]{64}",
        keep=r"(?i:\b(?:wallet|private|signer|deployer)[ _]key[^\n:=]{0,60}[:=][ \t]*[\"']?)",
        until=r"(?:[^\w]|$)",
    ),
    # Names of keys and their secrets, as a server of calls is given them.
    rule(
        "api-secret",
        "_keys",
        r"[A-Za-z0-9+/=]{32,}",
        keep=r"(?:LIVEKIT|API|SECRET|ACCESS|SIGNING|MASTER|PRIVATE)_KEYS[\"']?[ \t]*[:=][ \t]*[\"']?[\w-]{6,24}:[ \t]*",
        glued=True,
    ),
    # A field of so many characters in a program's data.
    rule(
        "password",
        "pic value",
        r"[^'\"\n]{4,64}",
        keep=r"(?i:PASSW(?:OR)?D[ \t]+PIC[ \t]+X\(\d+\)[ \t]+VALUE[ \t]+(?:IS[ \t]+)?['\"])",
        glued=True,
    ),
    rule("license-key", "pidkey", r"[A-Z0-9]{5}(?:-[A-Z0-9]{5}){4}", keep=r"(?i:PIDKEY=)"),
    # Whole sentences serve where a backup or a disk is opened.
    rule(
        "password",
        "restic_password passphrase=",
        r"[^\"'\n$<{]{6,128}",
        keep=r"(?:RESTIC_PASSWORD|\w{0,24}PASSPHRASE)=[\"']",
        until=r"[\"']",
        odd=True,
        glued=True,
    ),
    # What is piped to what opens a disk.
    rule(
        "command-password",
        "echo printf",
        r"[^\"'\n$]{6,128}",
        start=r"(?:echo|printf)[ \t]+(?:-\w+[ \t]+)?[\"'][^\"'\n]+[\"'][ \t]*\|[ \t]*(?:sudo[ \t]+)?cryptsetup",
        keep=r"(?:echo|printf)[ \t]+(?:-\w+[ \t]+)?[\"']",
        until=r"[\"'][ \t]*\|[ \t]*(?:sudo[ \t]+)?cryptsetup\b",
    ),
    # Seeds of one-time codes, as stores of passwords export them; a number to get in by, under its name.
    rule("totp-seed", '"totp"', r"[A-Z2-7]{16,64}", keep=r"(?i:\"totp\"[ \t]*:[ \t]*\")", until=r"\"", glued=True),
    rule("pin", "_pin", r"\d{4,8}", keep=r"(?i:\b[a-z]{2,16}_pin[ \t]*[:=][ \t]*[\"']?)", until=r"(?:[^\w.-]|$)", glued=True),
    # What Perl writes without quotes.
    rule(
        "password",
        "pass passw secret",
        r"[^)}\]|!/\s]{6,128}",
        start=r"(?i:\$\w*(?:pass|secret)\w*[ \t]*=>?[ \t]*qq?[({\[|!/])",
        keep=r"(?i:\$\w{0,24}(?:pass|passw|password|passwd|secret)[ \t]*=>?[ \t]*qq?[({\[|!/])",
        until=r"[)}\]|!/]",
        glued=True,
    ),
    # A host, and who gets in there by what.
    rule(
        "told-password",
        "box host",
        r"[^\s\"',;/]{6,64}",
        start=r"(?i:box|host)[ \t]+[\w-]+\.",
        keep=r"(?i:box|host)[ \t]+[\w-]{1,40}(?:\.[\w-]{1,40}){1,6}[ \t]*:[ \t]*[a-z][\w.-]{1,24}/",
        until=r"(?:[\s,;]|$)",
        odd=True,
    ),
    # Both sides of a change.
    rule(
        "changed-password",
        "neu new",
        r"[^\s\"'`,;]{6,64}",
        start=r"(?i:alt|old)[: ]+[^\s,;]+[,;]?[ \t]+(?:->[ \t]*)?(?i:neu|new)[: ]",
        keep=r"(?i:(?:alt|old)[: ]+[^\s,;]{4,64}[,;]?[ \t]+(?:->[ \t]*)?(?:neu|new)[: ]+[\"'`]?)",
    ),
    rule(
        "seed-phrase",
        "words",
        r"(?:[a-z]{3,8} ){11,23}[a-z]{3,8}\b",
        start=r"(?i:words)(?: [^\s:]+)+[ \t]*:\s",
        keep=r"(?i:words(?: [\w()',.-]{1,16}){1,12}[ \t]*:\s*[\"']?)",
    ),
)
