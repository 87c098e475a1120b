"""Secrets that are told apart by their place among the arguments of a call."""

from decklog.redact.rules.rule import Rule, rule

# Two texts in a row, or one that could be a key: most calls have neither.
_ARGUMENTS = r"\([\"'](?:[^\"'\n]*[\"'],[ \t]*(?:\w+\()?[\"']|[\w.~+/=-]{20,}[\"'])"

CALLS: tuple[Rule, ...] = (
    # The bytes of a key, one by one.
    rule(
        "encryption-key",
        "key[",
        r"0x[0-9a-fA-F]{2}(?:,\s{0,8}0x[0-9a-fA-F]{2}){15,63}",
        keep=r"(?i:\b\w{0,24}key\[\d{0,3}\][ \t]*=[ \t]*\{\s{0,8})",
    ),
    rule(
        "encryption-key",
        "fromhex unhexlify decodestring",
        r"(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{48}|[0-9a-fA-F]{64})",
        keep=r"(?i:\b(?:\w{0,24}_)?key[ \t]*(?::[ \t]*\w+[ \t]*)?:?=[ \t]*(?:\w+\.)?(?:fromhex|unhexlify|decodestring)\([\"'])",
        until=r"[\"']",
    ),
    # An account and its token, whatever the call is named.
    rule(
        "twilio-token",
        "ac",
        r"[0-9a-f]{32}",
        keep=r"AC[0-9a-f]{32}[\"'`]?(?:\.\w{1,12}\(\))?[ \t]*(?:[,:;|/]|=>)\s{0,24}"
        r"(?:[\w.]{1,24}[ \t]*(?:[:=]|=>)[ \t]*)?(?:String::from\([ \t]*)?@?[\"'`]?",
        until=r"(?:[^\w]|$)",
    ),
    rule("signing-secret", "define", r"[^\"'\n]{32,}", keep=r"define\([ \t]*[\"'][A-Z_]{0,40}(?:SALT|KEY)[\"'],[ \t]*[\"']"),
    rule(
        "signing-secret",
        "jwt.",
        r"[^\"'\n]{6,}",
        keep=r"(?i:jwt\.(?:sign|verify|encode|decode)\([^,\n\"']{1,80},[ \t]*b?[\"'])",
    ),
    rule(
        "signing-secret",
        "hmac cipher",
        r"[^\"'\n]{6,}",
        keep=r"(?:createHmac|createCipheriv|createDecipheriv)\([ \t]*[\"'][\w-]{1,32}[\"'],[ \t]*[\"']",
    ),
    rule(
        "signing-secret",
        "hmac fernet aesgcm secretkeyspec signingkey secretkey",
        r"[^\"'\n]{8,}",
        keep=r"(?i:hmac\.new|Fernet|AESGCM|SecretKeySpec|hmacShaKeyFor|setSigningKey|(?:create|import|load"
        r"|parse)SecretKey|hmac_?sha\d+)\("
        r"[ \t]*b?[\"']",
    ),
    rule(
        "signing-secret",
        "cookieparser cookiesession cryptr simplecrypto",
        r"[^\"'\n]{6,}",
        keep=r"(?i:\b(?:cookieParser|Cryptr|SimpleCrypto)\([ \t]*\[?[ \t]*[\"']"
        r"|\bcookieSession\([^)\n]{0,120}?\bkeys:[ \t]*\[[ \t]*[\"'])",
    ),
    rule(
        "signing-secret",
        "aes.new( des.new( des3.new( blowfish.new( chacha20.new( arc4.new(",
        r"[^\"'\n]{8,}",
        keep=r"\b(?:AES|DES3?|Blowfish|ChaCha20|ARC4)\.new\([ \t]*b?[\"']",
        until=r"[\"']",
    ),
    # An option of a call, and what it is set to.
    rule(
        "password",
        "password passwd passphrase secret token",
        r"[^\"'\s]{6,}",
        keep=r"\b[A-Z][A-Z0-9_]*_(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|KEYPASSWD)[ \t]*,[ \t]*[\"']",
        until=r"[\"'][ \t]*\)",
        odd=True,
    ),
    rule("network-password", "wifi.begin(", r"[^\"\n]{8,63}", keep=r"WiFi\.begin\([ \t]*\"[^\"\n]{1,32}\",[ \t]*\"", until=r"\""),
    rule(
        "connection-password",
        "smtp.start(",
        r"[^\"'\n]{4,}",
        keep=r"SMTP\.start\([^()\n]{1,160}?,[ \t]*[\"'][^\"'\n]{1,64}[\"'],[ \t]*[\"']",
        until=r"[\"'],[ \t]*:",
    ),
    rule(
        "password",
        "fetch(",
        r"[^\"'\n]{4,}",
        keep=r"fetch\([ \t]*[:\"'][\w.-]{0,40}(?i:pass|secret|token|key)[\w.-]{0,24}[\"']?[ \t]*\)[ \t]*\{[ \t]*[\"']",
        until=r"[\"'][ \t]*\}",
        glued=True,
    ),
    rule(
        "password",
        "pass secret",
        r"[^\"'\n\s]{4,}",
        keep=r"\{[a-z_]{0,24}?(?:password|passwd|passphrase|pass|secret)[ \t]*,[ \t]*(?:<<)?[\"']",
        until=r"[\"'](?:>>)?[ \t]*\}",
        glued=True,
    ),
    # What a lexer calls its tokens stands in such a pair too.
    rule(
        "token",
        "token",
        r"[^\"'\n\s]{6,}",
        keep=r"\{[a-z_]{0,24}?token[ \t]*,[ \t]*(?:<<)?[\"']",
        until=r"[\"'](?:>>)?[ \t]*\}",
        random=True,
        glued=True,
    ),
    # What opens a store of keys or passwords, beside its file.
    rule(
        "connection-password",
        ".kdb .jks .p12 .pfx .keystore",
        r"[^\"'\n]{8,128}",
        start=r"\.(?:kdbx?|jks|p12|pfx|keystore)[\"']",
        keep=r"\.(?:kdbx?|jks|p12|pfx|keystore)[\"'](?:\.\w{1,12}\(\)|\))?,[ \t]*(?:Some\(|b|@)?[\"']",
        until=r"[\"'][ \t]*[),.]",
        odd=True,
        glued=True,
    ),
    # By which the nodes of a cluster let each other in: an atom or a text, since a variable has another name.
    rule(
        "node-cookie",
        "set_cookie(",
        r"[A-Za-z0-9][^\s\"'(),]{5,}",
        start=r"(?:Node\.|erlang[.:])set_cookie\(",
        keep=r"(?:Node\.|erlang[.:])set_cookie\([ \t]*(?:[^,\n]{1,80},[ \t]*)?(?::[\"']?|[\"'])",
        until=r"[\"']?[ \t]*\)",
    ),
    rule(
        "connection-password",
        "auth",
        r"[^\"'\n\s]{4,}",
        keep=r"(?i:\b(?:red|redis|rds)(?:_?(?:client|conn|cli|db|cache))?(?::|\.|->)auth\([ \t]*[\"'])",
        until=r"[\"'][ \t]*\)",
        odd=True,
    ),
    # The account that sends transactions from a script: an address is shorter than its key.
    rule(
        "wallet-key",
        "vm.",
        r"(?:0x)?[0-9a-fA-F]{64}",
        keep=r"\bvm\.(?:startBroadcast|broadcast|rememberKey|sign|addr)\([ \t]*[\"']?",
        until=r"[\"']?[ \t]*[),]",
    ),
    rule(
        "connection-password",
        "database(",
        r"[^\"'\n]{4,}",
        start=r"\bdatabase\([ \t]*[\"']",
        keep=r"\bdatabase\([ \t]*[\"'][^\"'\n]{0,80}[\"'],[ \t]*[\"'][^\"'\n]{1,64}[\"'],[ \t]*[\"']",
        until=r"[\"'][ \t]*(?:\)|,[ \t]*[\"'](?:Vendor|[\w.]*[Dd]river|jdbc:|com\.|org\.))",
        odd=True,
    ),
    # Whom a directory knows by a distinguished name, and what proves it.
    rule(
        "connection-password",
        "bind(",
        # No search among those below that name.
        r"[^\"'\n(][^\"'\n]{3,}",
        start=r"(?i:bind\([ \t]*[\"'](?:cn|uid|ou|dc|samaccountname)=)",
        keep=r"(?i:bind\([ \t]*[\"'](?:cn|uid|ou|dc|samaccountname)=[^\"'\n]{1,160}[\"'],[ \t]*[\"'])",
        until=r"[\"']",
    ),
    # What a module keeps by a name of its own, turned from its letters to bytes.
    rule(
        "encryption-key",
        "base.decode",
        r"[0-9a-fA-F]{32,}|[A-Za-z0-9+/_-]{32,}={0,2}",
        start=r"@\w+[ \t]+Base\.decode",
        keep=r"(?i:@\w{0,40}(?:key|secret|salt|token|password))\w{0,12}[ \t]+Base\.decode(?:16|32|64)!?\([ \t]*\"",
        until=r"\"",
        glued=True,
    ),
    rule(
        "pin",
        "pin",
        r"\d{4,12}",
        keep=r"(?i:(?:verify|check|enter|submit|present|unlock|unblock|change)_?(?:user|so|card)?_?pin\([ \t]*[\"'])",
        until=r"[\"']",
    ),
    # A user and a password between braces, as C++ and Go set up what they log in with.
    rule(
        "connection-password",
        "login{ credential{ credentials{ auth{",
        r"[^\"'\n]{6,}",
        start=r"(?i:login|credentials?|(?:basic|plain)auth)\{[ \t]*(?:\w+:[ \t]*)?\"",
        keep=r"(?i:(?:login|credentials?|(?:basic|plain)auth)\{[ \t]*(?:\w+:[ \t]*)?\"[^\"\n]{1,64}\",[ \t]*"
        r"(?:\w+:[ \t]*)?\")",
        until=r"\"[ \t]*[},]",
        odd=True,
    ),
    rule("encryption-key", "pgp_sym", r"[^'\n]{6,}", keep=r"(?i:pgp_sym_(?:en|de)crypt(?:_bytea)?\([^,\n']{1,80},[ \t]*')"),
    rule(
        "storage-key",
        "fs.azure",
        r"[A-Za-z0-9+/]{40,}={0,2}",
        # A change has a sign before each of its lines.
        keep=r"fs\.azure\.account\.key\.[\w.-]{1,80}[\"']?[ \t]*(?:,|=|:|=>|[ \t])[ \t]*(?:\n[+-]?[ \t]{0,40})?[\"']?",
    ),
    rule("signing-secret", "crypt(", r"[^\"'\n]{6,}", keep=r"AES\.(?:en|de)crypt\([^,\n]{1,80},[ \t]*[\"']"),
    rule(
        "connection-password",
        "construct( pdo( connect( getconnection( imap_open( mysql( mysqli( pqsetdblogin(",
        r"[^\"'\n]{4,}",
        keep=r"(?:PDO(?:->__construct)?|mysqli?(?:_real)?(?:_connect)?|real_connect|getConnection|pymysql\.connect|MySQLdb\.connect"
        r"|imap_open|PQsetdbLogin)\([ \t]*"
        r"(?:(?:&?\w+|NULL),[ \t]*)?"
        r"(?:(?:[\"'][^\"'\n]{1,160}[\"']|[\w.$>()-]{1,64}),[ \t]*){1,5}?[\"'][^\"'\n]{1,64}[\"'],[ \t]*[\"']",
    ),
    rule(
        "connection-password",
        "(",
        r"[^\"'\n]{4,}",
        before="basic basicauth basic_auth basic_authentication credential credentials authenticate login logon log_in signin "
        "sign_in simple_bind simple_bind_s ldap_bind create_superuser create_user add_user createuser createaccount "
        "create_account",
        start=_ARGUMENTS,
        keep=r"\([\"'](?:[^\"'\n]*[\"'],[ \t]*[\"']){0,2}?[^\"'\n]*[\"'],[ \t]*(?:Some\(|String::from\(|&"
        r"|new[ \t]+\w+\(|@)?[\"']",
        until=r"[\"'][ \t]*[),]",
        odd=True,
        glued=True,
    ),
    rule(
        "connection-password",
        "(",
        r"[^\"'\n]{4,}",
        before="credentials",
        start=_ARGUMENTS,
        keep=r"\([\"'](?:[^\"'\n]*[\"'],[ \t]*[\"']){3}",
        until=r"[\"'][ \t]*\)",
        odd=True,
        glued=True,
    ),
    # A name, an address and a password.
    rule(
        "connection-password",
        "(",
        r"[^\"'\n]{4,}",
        before="create_superuser create_user createuser",
        start=_ARGUMENTS,
        keep=r"\([\"'](?:[^\"'\n]*[\"'],[ \t]*[\"']){2}",
        until=r"[\"'][ \t]*[),]",
        odd=True,
        glued=True,
    ),
    rule(
        "connection-password",
        "credential basic_auth",
        r"[^\"'\n]{4,}",
        keep=r"(?i:(?:credentials?(?:::|\.|->)(?:new|of|basic|create|from)\(|basic_auth )[ \t]*[\"'][^\"'\n]*[\"']"
        r"(?:\.\w+\(\))?,[ \t]*[\"'])",
        odd=True,
        glued=True,
    ),
    rule(
        "listed-password",
        "passwords passphrases secrets keys",
        r"[^\"'\n]{4,}",
        keep=r"(?i:(?:passwords|passphrases|secrets|api_?keys)[\"']?[ \t]*(?:=>|[:=])[ \t]*(?:new[ \t]+\w+)?[\[{(]+\s*"
        r"(?:[\"'][\w.@-]+[\"'][ \t]*(?:=>|:)[ \t]*)?[\"'])",
        until=r"[\"']",
        odd=True,
        glued=True,
    ),
    rule(
        "build-secret",
        "buildconfigfield resvalue",
        r"[^\"'\\\n]{8,}",
        keep=r"(?i:(?:buildConfigField|resValue)[ (][ \t]*[\"'][\w.]+[\"'],[ \t]*"
        r"[\"']\w*(?:secret|token|password|key)\w*[\"'],[ \t]*[\"'](?:\\?[\"'])?)",
        odd=True,
    ),
    rule("connection-password", "sp_addlogin", r"[^\"'\n]{4,}", keep=r"(?i:sp_addlogin[ \t]+N?'[^'\n]*',[ \t]*N?')"),
    rule(
        "connection-password",
        "user",
        r"[^\"'\n]{3,}",
        keep=r"(?i:user_?(?:pwd|pass(?:word)?)[ \t]*,[ \t]*[\"'][^:\"'\n]{1,64}:)",
        glued=True,
    ),
    rule(
        "client-key",
        "(",
        r"[\w.~+/=-]{20,}",
        before="client api sdk search twilio stripe pusher init initialize configure configuration mailgun sendgrid apikey "
        "api_key octokit bot telegraf plaid nexmo vonage pinecone typesense openai anthropic segment analytics bugsnag token "
        "client.run bot.run client.start bot.start client.login bot.login bot.connect client.connect",
        start=_ARGUMENTS,
        keep=r"\([\"'](?:[^\"'\n]*[\"'],[ \t]*[\"']){0,2}",
        until=r"[\"']",
        random=True,
        glued=True,
    ),
    rule(
        "signing-secret",
        "crypt",
        r"[0-9a-f]{32}",
        keep=r"[\"']crypt[\"'][ \t]*(?:=>|:)[ \t]*[\[{]\s*[\"']key[\"'][ \t]*(?:=>|:)[ \t]*[\"']",
        glued=True,
    ),
    rule(
        "connection-password",
        "login( ldap_bind( ftp_login( simple_bind credential passwordauth usernamepassword",
        r"[^\"'\n]{4,}",
        keep=r"(?:(?:smtp|imap|ftp|server|client|conn|session|mail)\w*\.login|ldap_bind|ftp_login|simple_bind_s"
        r"|NetworkCredential"
        r"|UsernamePasswordCredentials|UsernamePasswordAuthenticationToken|PasswordAuthentication|Credentials\.basic)\([ \t]*"
        r"(?:\$?\w+,[ \t]*)?[\"'][^\"'\n]{1,96}[\"'],[ \t]*[\"']",
    ),
)
