"""Secrets in the files and the dialogues of daemons, and in elements that have a name beside their value."""

from decklog.redact.rules.rule import Rule, rule

_NAMED = r"(?:password|passwd|passphrase|secret|token|(?:api|access|secret|private|account|encryption|signing)[._-]?key)"
_BASE64 = r"[A-Za-z0-9+/]{8,}={0,2}"

DAEMONS: tuple[Rule, ...] = (
    # What a proxy sends along so that it is let in.
    rule(
        "directive-secret",
        "_header",
        r"[^\s\"';$]{6,}",
        keep=r"(?i:\b(?:proxy_set|add|request)_header[ \t]+[\w-]{0,40}(?:secret|token|api-?key|password|auth)[ \t]+[\"']?)",
        until=r"[\"';\s]",
        odd=True,
    ),
    # A name and a value as elements side by side: Hadoop, servlets, property lists, XML-RPC.
    rule(
        "listed-password",
        "name> key>",
        r"[^\s<]{4,}",
        start=rf"(?i:{_NAMED}</[\w:-]*(?:name|key)>)",
        keep=rf"(?i:{_NAMED}</[\w:-]*(?:name|key)>\s*(?:<[\w:-]*type>[\w.:]{{1,64}}</[\w:-]*type>\s*)?"
        r"<[\w:-]*(?:value|string)>\s*(?:<string>\s*)?)",
        odd=True,
        glued=True,
    ),
    rule(
        "unseal-key",
        "keys",
        r"[0-9a-f]{64,66}|[A-Za-z0-9+/]{43,44}=?",
        keep=r"[\"'](?:(?:unseal_|recovery_)?keys(?:_base64|_b64|_hex)?)[\"'][ \t]*:[ \t]*\[\s*"
        r"(?:[\"'][A-Za-z0-9+/=]{43,66}[\"'],\s*)*[\"']",
        until=r"[\"']",
        random=True,
        glued=True,
    ),
    rule(
        "encryption-key",
        "base64:",
        r"[A-Za-z0-9+/]{42,86}={0,2}",
        keep=r"(?i:key[\"']?[ \t]*(?:=>|[:=])[ \t]*[\"']?base64:)",
        glued=True,
    ),
    # The server asks for the password in base64, and the next line is the answer.
    rule(
        "mail-password",
        "334",
        _BASE64,
        keep=r"334 (?:UGFzc3dvcmQ6|cGFzc3dvcmQ6)\s*?\n[^\n:]{0,40}?(?:C: ?|[>-]{1,3} ?)?",
        until=r"\r?(?m:$)",
    ),
    rule(
        "mail-password",
        "auth",
        r"[A-Za-z0-9+/]{12,}={0,2}",
        keep=r"(?i:\bauth(?:enticate)? (?:plain|login|xoauth2|oauthbearer) )",
        random=True,
    ),
    rule(
        "store-password",
        "auth",
        r"[^\s\"'\\]{4,}",
        keep=r"(?i:\"auth\" \"(?:[\w.-]{1,40}\" \")?|> auth (?:[\w.-]{1,40} ){0,2}?|\bAUTH\s+\$\d+\s+)",
        until=r"(?:\"|[ \t]*(?m:$))",
        odd=True,
        glued=True,
    ),
    # The scheme says that it is kept as it is.
    rule("directive-password", "{", r"[^\s\"'<>:]{4,}", keep=r"\{(?i:noop|plain|cleartext|plaintext)\}", odd=True, glued=True),
    # Brackets are quotes in some languages: `set password {…}`, `:password<…>`.
    rule(
        "password",
        "pass secret token key",
        r"[^\s{}<>\"'$\[]{4,}",
        keep=r"(?i:(?::|\bset[ \t]+)[\w:-]{0,24}(?:password|passwd|passphrase|secret|token|api_?key)(?:<|[ \t]+\{))",
        until=r"[>}]",
        odd=True,
        glued=True,
    ),
    rule("directive-password", "insecure-password", r"\S{4,}", keep=r"\binsecure-password[ \t]+[\"']?"),
    rule(
        "directive-password",
        "createuser",
        r"[^\s\"']{8,}",
        keep=r"\bcreateUser[ \t]+(?:-e[ \t]+\S+[ \t]+)?[\w.-]+[ \t]+(?:MD5|SHA(?:-?\d{3})?)[ \t]+[\"']?"
        r"(?:[^\s\"']{8,}[\"']?[ \t]+(?:DES|AES)[ \t]+[\"']?)??",
        odd=True,
    ),
    rule("directive-password", "com2sec", r"\S{4,}", keep=r"\bcom2sec6?[ \t]+\S+[ \t]+\S+[ \t]+[\"']?", odd=True),
    rule(
        "listed-password",
        "-secrets raddb",
        r"[^\s\"'#*]{6,}",
        start=r"(?m:^)\S+[ \t]+\S+[ \t]+[*\d][^\n#]{0,40}#[^\n]{0,40}?(?:[cp]h?ap-secrets|raddb)",
        keep=r"(?m:^)\S+[ \t]+[\"']?",
        until=r"[\"']?[ \t]+[*\d][^\n#]{0,40}#[^\n]{0,40}?(?:[cp]h?ap-secrets|raddb)",
        odd=True,
        glued=True,
    ),
    rule("directive-password", "register", r"[^\s\"'@:]{4,}", keep=r"\bregister[ \t]*=>[ \t]*[\w.+-]+:", until="@"),
    rule(
        "directive-password",
        "eap xauth psk ntlm",
        r"[^\"\n]{4,}",
        keep=r":[ \t]*(?:EAP|XAUTH|PSK|NTLM)[ \t]+\"",
        until=r"\"",
        glued=True,
    ),
    rule(
        "signing-secret",
        "signwith( signedstring( symmetricsecuritykey( signjwt( hmac256( hmac384( hmac512( jwt::",
        r"[^\"'\n]{6,}",
        keep=r"(?:signWith\([^,\n\"']{1,60},[ \t]*|SignedString\((?:\[\]byte\()?|SymmetricSecurityKey\([\w.]{0,40}\(?"
        r"|SignJWT\([^\n\"']{0,80}?encode\(|HMAC(?:256|384|512)\(|JWT::(?:en|de)code\([^,\n\"']{1,60},[ \t]*)[\"']",
        until=r"[\"']",
    ),
    # Written as bytes, none of which is a word.
    rule(
        "signing-secret",
        "secret password token salt _key",
        r"(?:[^\"'\n\\]{0,16}\\+x[0-9a-fA-F]{2}){4,}[^\"'\n]{0,64}",
        keep=r"(?i:(?:secret|password|token|salt|_key)[\w-]*(?:[\"']\]?)?[ \t]*(?:=>|[:=])[ \t]*b?[\"'])",
        until=r"[\"']",
        glued=True,
    ),
    # Host, database, user and password of the queries that a mail server makes.
    rule(
        "directive-password",
        "sql_servers",
        r"[^\s/:\"']{4,}",
        keep=r"\b(?:mysql|pgsql)_servers[ \t]*=[ \t]*(?:<[;|][ \t]*)?[^\s/]{1,120}/[^\s/]{1,64}/[^\s/]{1,64}/",
    ),
    # Behind the module's own password those of its clients, one after the other.
    rule(
        "listed-password",
        "password=",
        r"[^\s\"\[][^\s\"]{3,}",
        start=r"\bpassword=\"[^\"\n]+\"[ \t]*\\?\s+user_",
        keep=r"\bpassword=\"[^\"\n]+\"(?:[ \t]*\\?\s+user_[\w.-]+=\"[^\"\n]+\")*?[ \t]*\\?\s+user_[\w.-]+=\"",
        until=r"\"",
        glued=True,
    ),
    rule("directive-password", "set-key", r"[^\s\"']{8,}", keep=r"\bset-key[ \t]+(?:ascii|hex)[ \t]+[\"']?"),
    rule(
        "directive-password",
        "snmp-server",
        r"[^\s\"']{4,}",
        keep=r"snmp-server[ \t]+host[ \t]+(?:\w+[ \t]+)?[\d.]{7,15}[ \t]+"
        r"(?:(?:traps|informs)[ \t]+)?version[ \t]+(?:1|2c)[ \t]+[\"']?",
    ),
    # An address, a user and a password: the file of what mounts it.
    rule(
        "listed-password",
        "http",
        r"[^\s\"']{6,}",
        start=r"(?m:^)https?://[^\s\"']+[ \t]+[\w.@-]+[ \t]+[\"']?[^\s\"']{6,}[\"']?[ \t]*(?m:$)",
        keep=r"(?m:^)https?://[^\s\"']+[ \t]+[\w.@-]+[ \t]+[\"']?",
        until=r"[\"']?[ \t]*(?m:$)",
        odd=True,
        glued=True,
    ),
    rule(
        "url-token",
        "conda",
        r"[A-Za-z0-9-]{20,}",
        keep=r"(?i:conda[\w.-]{0,60}(?::\d{2,5})?/t/)",
        until="/",
        random=True,
        glued=True,
    ),
    # A key that looks like a commit, beside the user it belongs to or in the call that takes it.
    rule(
        "api-key",
        "username wandb",
        r"[0-9a-f]{32}(?:[0-9a-f]{8})?",
        keep=r"(?:\{\s{0,8}\"username\"[ \t]*:[ \t]*\"[\w.@-]{1,64}\",\s{0,8}"
        r"\"key\"[ \t]*:[ \t]*\"|\bwandb\.login\([^()\n]{0,60}?\bkey=[\"'])",
        until=r"[\"']",
        glued=True,
    ),
    # A token that is written as ids are: only its name tells it from the accessor beside it.
    rule(
        "token",
        "secretid secret_id secret-id",
        r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        keep=r"(?i:\bsecret[_-]?id[\"']?(?:[ \t]*[:=]|[ \t]{2,}|[ \t]*\|)[ \t]*[\"']?)",
        glued=True,
    ),
    # Written with a blank it is the number of a secret elsewhere: here the accessor stands right above.
    rule(
        "token",
        "accessor",
        r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        start=r"(?i:\baccessor id[ \t]*[:=|])",
        keep=r"(?i:\baccessor id[ \t]*[:=|][^\n]{0,60}\n[ \t|]*secret id[ \t]*[:=|][ \t]*)",
    ),
    # What a token is worth, below the name it was given: in a table with lines around its cells, or as JSON.
    rule(
        "token",
        "full-tokenid",
        r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        start=r"\bfull-tokenid\b",
        keep=r"\bfull-tokenid\b(?:[^\n]{0,200}\n(?:[^\w\n]{0,160}\n)?[^\w\n]{0,12}value[^\w\n]{1,40}"
        r"|[^\n]{0,300}?\"value\"[ \t]*:[ \t]*\")",
    ),
    rule(
        "seed-phrase",
        "phrase mnemonic words wallet bip39 seed",
        r"(?:[a-z]{3,8} ){11,23}[a-z]{3,8}\b",
        keep=r"(?i:(?:mnemonic|(?:seed|recovery|backup|wallet)[ _-]?(?:phrase|words))(?:,? [\w(),'!-]{1,48}){1,12}[\"']?[ \t]*"
        r"(?:[:=]|->|is)\s*[\"']?"
        r"|\bwallet[^\n:=\"'{}()]{0,40}:[ \t]*[\"'`]?|\b(?:12|15|18|21|24)[ -]words\)?:?[ \t]*\n[ \t]*"
        r"|(?:seed|recovery|backup)[ _-]phrase[^\n]{0,40}\n\s{0,12}"
        # The call or the option that takes one.
        r"|(?:mnemonic|phrase|seed|wallet|bip39)\w{0,24}(?:(?:\.|::|->)\w{1,24}){0,2}(?:\([^\n\"'`()]{0,40}|[ \t]+|=)[\"'`])",
        glued=True,
    ),
)
