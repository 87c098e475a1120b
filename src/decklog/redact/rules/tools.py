"""Secrets among the arguments of programs and in the lines of devices: the place tells them, or the option before them."""

from decklog.redact.rules.rule import Rule, rule

# Bounded gaps: open ones would make every hit on a long line look to the end of that line.
_QUIET = r"[^\n|;&]{0,120}?\s"
_GAP = r"[^|;&]{0,160}?"
_BARE = r"[^\s\"'-][^\s\"']*"
_TOKEN = r"[\w.~+/=-]{12,}"
_ASKING = (
    r"kinit|cryptsetup|(?:ch)?passwd|gpg|ssh-add|sudo|su|login|vncpasswd|faillock|restic|borg|openssl|htpasswd|vault"
    r"|wrangler|keychain|keepassxc-cli|bw|op|lpass|pass|gopass|smbpasswd|age|rage|zfs|veracrypt|fscrypt|p4|gh|openconnect|openvpn|pdbedit|adcli|realm|sshfs"
)

LOGINS: tuple[Rule, ...] = (
    rule(
        "command-password",
        "-u -l -n --user --login",
        r"[^\s\"'-][^\s\"']{3,}",
        keep=r"(?:-[uUln]|--user(?:name)?"
        r"|--login)[ =][\"']?[\w.@\\+-]{1,64}[\"']?[ \t]+(?:-{1,2}[\w-]+[ =][^\s\"'-]\S*[ \t]+){0,2}?"
        r"-(?:[pPw]|pw|pass)[ \t=]?[\"']?",
        odd=True,
        glued=True,
    ),
    rule(
        "command-password",
        "isql",
        r"[^\s\"'-][^\s\"']{3,}",
        keep=r"\bisql[ \t]+(?:-\w+[ \t]+)*[\w.]+[ \t]+[\w.@]+[ \t]+[\"']?",
        odd=True,
    ),
    rule("command-password", "bcp sqlcmd isql osql", _BARE, keep=rf"(?:bcp|sqlcmd|d?b?t?isql|osql)\b{_QUIET}-P[\"']?"),
    # A script that answers the question of another program.
    rule(
        "typed-password",
        "assword asscode assphrase",
        r"[^\s\"'$\\][^\"'\\\n\r]{3,}",
        keep=r"[pP]?ass(?:word|code|phrase)[^\n{]{0,12}[\"'}]?\s{0,8}\{?\s{0,8}(?:exp_)?send(?:line)?(?:[ \t]+--)?[ \t(]+[\"']",
        until=r"[\r\n]?[\"']",
        glued=True,
    ),
    rule("command-password", "-auth", r"[^\s\"']{4,}", keep=r"--proxy-auth[ =][\"']?[\w.@+-]+:", glued=True),
    rule(
        "told-password",
        "u:",
        r"[^\s\"']{4,}",
        keep=r"(?m:^|[\s(,])u: [^\s\"']+[ ,;/|]+p: ?[\"']?",
        odd=True,
        glued=True,
    ),
    rule(
        "listed-password",
        "password passwd secret token",
        r"\S{4,}",
        keep=r"(?m:^)[\w.-]*(?i:password|passwd|secret|token)\t+",
        odd=True,
        glued=True,
    ),
    rule(
        "command-secret",
        "alias config",
        r"[^\s\"']{8,}",
        keep=r"\bmc[ \t]+(?:--?[\w-]+[ \t]+)*(?:alias[ \t]+set|config[ \t]+host[ \t]+add)[ \t]+[\w./-]+[ \t]+[\"']?https?://[^\s\"']+[\"']?"
        r"[ \t]+[\"']?[\w.@-]+[\"']?[ \t]+[\"']?",
    ),
    rule("command-password", "_pw", _BARE, keep=r"(?:input|owner|user)_pw[ \t]+[\"']?"),
    rule("command-password", "ldappasswd", _BARE, keep=rf"ldappasswd\b(?:{_QUIET}|[ \t]+)-[as][ \t]*[\"']?"),
    rule(
        "command-password",
        "impdp expdp sqlldr rman sqlcl exp imp tnsping",
        r"[^\s\"'@/]+",
        keep=r"(?:impdp|expdp|exp|imp|sqlldr|rman|sqlcl|tnsping)[ \t]+(?:-\w+[ \t]+|userid=|target[ \t]+)*[\"']?[\w$]{1,30}/",
        odd=True,
    ),
    rule(
        "command-password",
        "http-basic",
        _BARE,
        keep=r"(?:composer|poetry)[ \t]+config[ \t]+(?:-{1,2}[\w-]+[ \t]+)*http-basic\.\S+[ \t]+[^\s\"']+[ \t]+[\"']?",
    ),
    rule(
        "command-password",
        "config",
        r"[^\s\"']+",
        keep=r"bundle[ \t]+config[ \t]+(?:set[ \t]+)?(?:-{1,2}\w+[ \t]+)*[\w-]+\.[\w./-]+[ \t]+[\"']?[\w.@+-]+:",
    ),
    rule(
        "command-token",
        "config token",
        _TOKEN,
        keep=r"(?:composer|poetry|yarn|npm|pnpm|bundle|git|pip|conda|hub"
        r"|glab)[ \t]+config[ \t]+(?:set[ \t]+)?(?:-{1,2}[\w-]+[ \t]+)*"
        r"[\w./:-]*(?i:token|auth)[\w./:-]*[ \t]+[\"']?",
        random=True,
    ),
    rule(
        "command-password",
        "keychain security",
        _BARE,
        keep=rf"security[ \t]+(?:(?:[\w-]+-keychain[\w-]*|set-key-partition-list)\b(?:{_QUIET}|[ \t]+)-[pPk]"
        rf"|import\b(?:{_QUIET}|[ \t]+)-P)[ \t]+[\"']?",
    ),
    rule(
        "command-password",
        "<(",
        r"[^\s\"')]+",
        keep=r"(?:-file|-fd|-key|psk|secret|token|password|passphrase|-pass(?:in|wd)?)[ =]<\([ \t]*(?:echo|printf)[ \t]+"
        r"(?:-n[ \t]+|[\"']?%s(?:\\n)?[\"']?[ \t]+)?[\"']?",
        glued=True,
    ),
    rule(
        "command-password",
        "<<<",
        r"[^\"'\n]+",
        keep=rf"(?:{_ASKING})\b(?:{_QUIET}|[ \t]+)<<<[ \t]*[\"'](?:[a-z][\w-]{{0,31}}:)?",
        until=r"[\"']",
    ),
    rule(
        "command-password",
        "<<<",
        r"[^\s\"']+",
        keep=r"read[ \t]+-\w+[ \t]+\w+[ \t]*<<<[ \t]*[\"']?",
        odd=True,
    ),
    rule(
        "command-password",
        "unlock login",
        r"[^\s\"'-][^\s\"']{3,}",
        keep=r"(?:bw[ \t]+unlock|(?:bw[ \t]+|mega-)login[ \t]+[\"']?\S+@[^\s\"']+[\"']?)[ \t]+[\"']?",
        odd=True,
    ),
    rule(
        "command-token",
        "login auth unseal token add save",
        _TOKEN,
        keep=r"(?:wandb|netlify|snyk|cargo|vault|railway|ngrok|pulumi|hf|huggingface-cli|modal|replicate|surge|expo|eas"
        r"|gem|sentry-cli"
        r"|databricks|prefect|comet|neptune|clearml|roboflow|doppler|fly|flyctl|civo|hcloud|linode-cli|vultr-cli"
        r"|buildkite-agent|nx-cloud"
        r"|depot|supabase|turso|neonctl|planetscale|pscale|tailscale|cloudflared|temporal|kaggle|zapier|render|porter"
        r"|qovery)[ \t]+"
        r"(?:auth[ \t]+|cloud[ \t]+|config[ \t]+|operator[ \t]+|apikey[ \t]+)?"
        r"(?:login|auth|add-authtoken|authtoken|unseal|token|set-token|add|save)[ \t]+(?:--?[\w-]+[ =])?[\"']?",
        random=True,
    ),
    rule(
        "command-token",
        "-t -k -g",
        _TOKEN,
        keep=r"(?:codecov\w*|doctl|coveralls|travis|nuget|stripe|vercel|netlify|sentry-cli|hcloud|glab)"
        rf"\b(?:{_QUIET}|[ \t]+)-[tkg][ =][\"']?",
        random=True,
    ),
    # Of any program: what nobody would write but as a password.
    rule(
        "option-password",
        "-p -k",
        r"[A-Za-z0-9][^\s\"'/\\=:,;|&<>(){}]{6,40}",
        keep=r"[ \t]-[pPK][ \t]+[\"']?",
        until=r"(?:[\s\"')]|$)",
        glued=True,
    ),
    # Of any program: what is random in letters of both cases and digits, and so long, is a key.
    rule(
        "option-key", "-t -k", r"[A-Za-z0-9_~+/-]{24,}={0,2}", keep=r"[ \t]-[tkTK][ =][\"']?", until=r"(?:[\s\"']|$)", glued=True
    ),
    rule("command-token", "setapikey", _TOKEN, keep=r"(?i:setapikey)[ \t]+[\"']?"),
)

STORES: tuple[Rule, ...] = (
    rule(
        "command-secret",
        "-",
        r"[^\s\"']+",
        keep=r"(?:ssm[ \t]+put-parameter|keyvault[ \t]+secret[ \t]+set|secret[ \t]+(?:set|add|create|update)"
        r"|variable[ \t]+(?:set|create))"
        rf"\b{_GAP}--?(?:value|secret-value|data)[ =][\"']?",
        odd=True,
    ),
    rule(
        "command-secret",
        "secret",
        r"[^\s\"']{4,}",
        keep=r"(?:fly|flyctl|gigalixir|supabase|wrangler|doppler|infisical|railway|azd|copilot|eas|netlify|cf|deployctl"
        r"|modal|snow|teller)[ \t]+"
        r"secrets?[ \t:](?:set|put|create|import|add)?[ \t]*(?:-{1,2}[\w-]+(?:[ =]\S+)?[ \t]+)*[\w./-]+[ =](?:<<<[ \t]*)?[\"']?",
        odd=True,
    ),
    rule(
        "command-secret",
        "--from-literal",
        r"[^\s\"']+",
        keep=rf"create[ \t]+secret\b{_GAP}--from-literal[ =][\"']?[\w.-]+=[\"']?",
        odd=True,
    ),
    rule(
        "command-secret",
        "echo printf",
        r"[^\s\"'|][^\"'|\n]{3,120}?",
        keep=r"(?:echo|printf)[ \t]+(?:-n[ \t]+)?(?:[\"']%s\s?[\"'][ \t]+)?[\"']?",
        until=r"[\"']? ?\| (?:npx |sudo )?(?:gcloud secrets|gh secret|gh auth|vercel env|docker secret|podman secret"
        r"|vault|wrangler|cryptsetup"
        r"|zfs|veracrypt|hdiutil|fscrypt|clevis|age|ykman"
        r"|gpg|openssl (?:enc|passwd|pkcs|rsa|genrsa|ec|pkey|req|x509|aes|smime|cms)"
        r"|kinit|smbpasswd|ssh-add|firebase|flyctl|heroku|pass insert|keepassxc-cli|rclone|cosign|restic"
        r"|borg|ansible-vault"
        r"|htpasswd|vncpasswd|az keyvault|aws secretsmanager|kubeseal|kubectl create secret|secret-tool|keyring"
        r"|security|oathtool)",
        odd=True,
    ),
    rule("command-password", "password", _BARE, keep=r"passwd/[\w-]+password(?:-again)?[ \t]+password[ \t]+"),
    rule(
        "command-password",
        "cracked potfile",
        r"[^\s\"']{4,}",
        keep=r"(?i:(?:cracked|potfile)[ \t:]+[0-9a-f]{4,}:)",
        odd=True,
    ),
)

DEVICES: tuple[Rule, ...] = (
    rule(
        "app-password",
        "pass",
        r"[a-z]{4}(?: [a-z]{4}){3}",
        start=r"(?i:pass(?:word|wd)?[ \t]+[\"']?)[a-z]{4} [a-z]{4} ",
        keep=r"(?:(?m:^)[^\n\"']{0,40}?)?(?i:pass(?:word|wd)?[ \t]+[\"']?)",
        until=r"(?:[\"'\s]|$)",
        glued=True,
    ),
    rule(
        "directive-password",
        "community",
        r"[^\s\"';]+",
        keep=r"(?i:(?:(?:snmp[_-]?|trap)community(?:[_-]?string)?[ \t:=]+|\bcommunity string[ \t]*(?:[:=]|is)[ \t]*)[\"']?)",
        odd=True,
    ),
    rule(
        "directive-secret",
        "key authentication password secret psk",
        r"[^\s\"';{}]{4,}",
        keep=r"(?i:(?:(?:radius|tacacs)(?:-server|\+)?(?:[ \t]+(?:host|server)[ \t]+\S+)?[ \t]+(?:server-"
        r"|shared-)?(?:key|secret)|key-string"
        r"|pre-shared-key|isakmp[ \t]+key|message-digest-key[ \t]+\d+[ \t]+md5|authentication-key|encrypted-password"
        r"|chap[ \t]+(?:password|secret)"
        r"|neighbor[ \t]+\S+[ \t]+password|nhrp[ \t]+authentication|wpa-psk[ \t]+ascii)[ \t]+(?:address[ \t]+\S+[ \t]+"
        r"|ascii-text[ \t]+)?"
        r"(?:\d[ \t]+)?[\"']?)",
        odd=True,
    ),
    rule(
        "directive-secret",
        "radius tacacs tacplus ldap ike bgp",
        r"[^\s\"';{}]{4,}",
        keep=r"(?i:(?:radius|tacacs|tacplus|ldap|ike|bgp)[\w+.-]{0,20}[ \t]*\{[^{}]{0,80}?\b(?:secret|shared-secret|key"
        r"|password)[ \t]+[\"']?)",
        until=r"[\"']?[ \t]*;",
    ),
    # Behind the server's address, or in the lines of its block, which are indented.
    rule(
        "directive-secret",
        "radius tacacs tacplus",
        r"[^\s\"';{}]{4,}",
        start=r"(?i:(?:radius|tacacs|tacplus)[ -]server[ \t]+\S+)",
        keep=r"(?i:(?:radius|tacacs|tacplus)(?:-server[ \t]+[\da-f][\w.:]{2,63}[ \t]+(?:port[ \t]+\d+[ \t]+)?secret"
        r"|[ \t]+server[ \t]+\S{1,64}[ \t]*\n(?:[ \t]+[^\n]{0,120}\n){0,6}?[ \t]+(?:server-)?key)"
        r"[ \t]+(?:\d[ \t]+)?[\"']?)",
    ),
    rule(
        "directive-secret",
        "client",
        r"[^\s\"';{}]{4,}",
        start=r"(?m:^)[ \t]*client[ \t]+[\w.:/-]{1,64}[ \t]*\{",
        keep=r"(?m:^)[ \t]*client[ \t]+[\w.:/-]{1,64}[ \t]*\{[^{}]{0,160}?\bsecret[ \t]*=[ \t]*[\"']?",
        glued=True,
    ),
    rule(
        "directive-password",
        "auth priv",
        r"[^\s\"']{8,}",
        keep=r"\b(?:auth[ \t]+(?:md5|sha(?:-?\d{3})?)|priv[ \t]+(?:3?des|aes(?:[ \t-]?(?:128|192|256))?))[ \t]+[\"']?",
        odd=True,
    ),
    rule(
        "directive-password",
        "authentication-password privacy-password",
        r"[^\s\"';]{8,}",
        keep=r"(?:authentication|privacy)-password[ \t]+[\"']?",
        odd=True,
    ),
    rule("directive-password", "auth-pass", _BARE, keep=r"sentinel[ \t]+auth-pass[ \t]+\S+[ \t]+[\"']?"),
    rule(
        "directive-password",
        "user setuser",
        r"[^\s\"'>]{4,}",
        keep=r"(?i:(?:acl setuser|user) [\w.-]+ (?:reset )?on >)",
    ),
    rule(
        "private-key",
        "account key deployer",
        r"(?:0x)?[0-9a-fA-F]{64}",
        keep=r"(?i:(?:accounts|private_?keys?|deployer)[\"']?[ \t]*[:=][ \t]*\[\s*[\"'])",
    ),
    rule(
        "listed-password",
        "\" '",
        r"[^\s\"']{4,}",
        keep=r"(?m:^)[\"'][\w.@\\-]+[\"'][ \t]+[\w.*-]+[ \t]\*[ \t][\"']?",
        odd=True,
        glued=True,
    ),
    rule(
        "listed-password",
        '"',
        r"[^\"\n]{4,}",
        keep=r"(?m:^)[\"']?[\w.@\\-]+[\"']?[ \t]+\*[ \t]+\"",
        until=r"\"[ \t]+[*\d]",
        odd=True,
        glued=True,
    ),
    rule(
        "listed-password",
        '"',
        r"[^\"\n]{4,}",
        keep=r"(?m:^)[\"']?[\w.@\\-]+[\"']?[ \t]+[\w.-]{1,40}[ \t]+\"",
        until=r"\"[ \t]+\*[ \t]*(?m:$)",
        odd=True,
        glued=True,
    ),
    rule(
        "gossip-key",
        "encrypt",
        r"(?:[A-Za-z0-9+/]{21}[AQgw]==|[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{32})",
        keep=r"encrypt(?:[\"']?[ \t]*[:=][ \t]*[\"']?|[ \t]+[\"']?)",
        until=r"(?:[\s\"',}]|$)",
    ),
    rule(
        "registry-password",
        "bundle_",
        r"[^\s\"'/]{6,}",
        keep=r"BUNDLE_\w+__\w+[\"']?(?:: ?|=)[\"']?[\w.@+-]{1,64}:",
        odd=True,
    ),
    rule(
        "registry-password",
        "bundle_",
        r"[\w-]{16,}",
        keep=r"BUNDLE_\w+__\w+[\"']?(?:: ?|=)[\"']?",
        until=r"(?:[\s\"']|$)",
        random=True,
    ),
    # The line below the command, or below what it warns of.
    rule(
        "printed-secret",
        "auth:token",
        r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        keep=r"auth:token[^\n]{0,40}\n(?:[^\n]{0,120}\n)?[ \t]*",
    ),
    rule(
        "command-secret",
        "encrypt_string",
        r"[^\"'\n]{4,}",
        keep=r"encrypt_string[ \t]+(?:--?[\w-]+[ =][^\s\"'-]\S*[ \t]+)*[\"']",
        until=r"[\"']",
    ),
    rule("directive-password", "auth", r"[^\s\"']{4,}", keep=r"\bstats[ \t]+auth[ \t]+[\w.@-]{1,40}:"),
    rule(
        "command-password",
        "auth",
        r"[^\s\"']{8,}",
        keep=r"\"AUTH[ \t]+(?:[\w.-]{1,32}[ \t]+)?",
        until=r"\"",
        odd=True,
        glued=True,
    ),
    rule(
        "listed-password",
        "pass pwd secret token key",
        r"[^\s|]{8,}",
        keep=r"(?m:^)[ \t]*\|[ \t]*[\w.-]*(?i:pass(?:word|wd)?|pwd|secret|token|api_?key)[ \t]*\|[ \t]*",
        until=r"[ \t]*\|",
        odd=True,
        glued=True,
    ),
    # A list of names and what they are set to, in columns.
    rule(
        "listed-password",
        "pass pwd secret token _key",
        r"[^\s|]{8,}",
        keep=r"(?m:^)[ \t|]*[A-Z][A-Z0-9_]*(?:PASS(?:WORD|WD|PHRASE)?|PWD|SECRET|TOKEN|_KEY)(?:[ \t]{2,}|[ \t]*\|[ \t]*)",
        odd=True,
        glued=True,
    ),
    rule("query-key", "appid", r"[0-9a-f]{32}", keep=r"(?i:appid=)", until=r"(?:[^\w-]|$)", glued=True),
    rule("url-token", "private-", r"[0-9a-f]{16,}", keep=r"[?&/]private-", glued=True),
    rule("url-password", "://", r"[0-9a-f]{32}:[0-9a-f]{32}", keep=r"https?://", until="@"),
    rule(
        "password",
        ">",
        r"[^\s<][^\n<]*",
        keep=r"(?i:<[\w:.-]{0,40}(?:password|passwd|passphrase|secret|token|api-?key)(?:[ \t][^<>\n]{0,80})?>)[ \t]*\n[ \t]*",
        until=r"[ \t]*\n[ \t]*</[\w:.-]{0,40}(?i:password|passwd|passphrase|secret|token|api-?key)[ \t]*>",
        glued=True,
    ),
    rule(
        "password",
        "<setting",
        r"[^\s<][^\n<]*",
        keep=r"<setting name=\"\w*(?:Password|Secret|Token|ApiKey)\"[^<>\n]*>\s*<value>",
        glued=True,
    ),
)
