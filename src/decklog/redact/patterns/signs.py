"""The words without which no text holds a secret: marks of providers, names, commands, calls, and what comes before one told.

They are apart from the rules because they are asked before those are loaded.
"""

# What tokens with a provider's mark have in them, in lower case.
_MARKS_TEXT = """
    ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ v1. glpat- gldt- glrt glcbt- glptt- glft- glagent- glimt- gloas-
    glsoat- glffct- gr1348941 _gitlab_s atbb atctt3x atatt3x gto_ azdo sgp_ akia asia abia acca a3t absk
    bedrock-api amzn.mws aiza ya29. 1//0 gocspx- 6lc 6ld 6le 6lf accountkey shared sig 7q~ 8q~ azse +ast
    acdb jqqj ltai akid ocid1. apikey aqvn t1. _v1_ lin_ scw hrku- cfat_ cfut_ cfk_ v1.0- vercel_ vcp_ vci_
    vca_ vcr_ vck_ nfp_ nfc_ nfo_ nfb_ fo1_ fm1 fm2_ rnd_ railway_ sbp_ sb_secret pscale_ napi_ turso_ dapi
    dkea dose ver:1 upstash pnu_ pnb_ sha256~ sk- hf_ api_org_ gsk_ xai- pplx- r8_ fw_ csk- nvapi- pcsk_
    lsv2_ ls__ tvly- fc- jina_ sk_ pa- e2b_ ak- as- flp_ co_api_ npm_ pypi- dckr_ rubygems_ cio oy2 akc ap
    cmvmd clojars_ x-apikey hex xox xapp- slack office.com webhook mfa. :aa sg. key- -us sib- re_ sk0 sk1
    sk2 sk3 sk4 sk5 sk6 sk7 sk8 sk9 ska skb skc skd ske skf ac0 ac1 ac2 ac3 ac4 ac5 ac6 ac7 ac8 ac9 aca acb
    acc acd ace acf zoom.us live_ test_ apa91b rk_ pk_ ek_ whsec_ eaa sq0 access_token$ paypal shp rzp_
    flwseck flwpubk access- organizations/ aqe ezak eztk shippo_ duffel_ glc_ glsa_ nrak nrii nrjs nriq nrra
    nraa nrbr nrsp nral sntry sentry phx_ phs_ phc_ dt0 hca hcb hcx pylf_ sdk- api- mob- secret- console-
    dd- xaat- xapt- bstk hvs. hvb. hvr. s. b. atlasv1 pul- dp. ops_eyj a3- age-secret st. 00 tskey- sc_ ext_
    scauth_ authress_ ngrok privatekey preshared ccip bkua_ bkct_ bkat_ bkaj_ sqp_ squ_ sqa_ sqb_ snyk_
    codecov 11 semgrep scalr ico- endr+ expo pmak- pmat- rdme_ rootly_ dvc_ unkey_ vtwn_ tr_ signkey- _auth
    ntn_ secret_ pat fig cfpat- sk.eyj pk.eyj tk.eyj aaaaaaaaaaaaaaaaaaaa igq wpl_ap act. sl. cflt tfp_
    zapier ifttt fio-u- skprod sb- _mmk s-s4t2 rgapi- monday sat. hmac= pak_ pat_ key_ tok_ token_ api_ eyj
    aio_ atta pat-na pat-eu xprv yprv zprv tprv -----begin ----begin aws4 bearer basic digest argon2 bcrypt pbkdf2 scrypt
"""
MARKS = tuple(_MARKS_TEXT.split())
NAMES = {
    "pass": ("word", "owrd", "wd", "phrase", "code", "command", "w", "e"),
    "pwd": (),
    "secret": (),
    "token": (),
    "key": (),
    "auth": ("orization", "tok", "key"),
    "cred": ("ential", "s"),
    "jwt": (),
    "psk": (),
    "pw": (),
    "pat": (),
    "phrase": (),
    "mnemonic": (),
    "identified": (),
    "cookie": (),
    "bearer": (),
    **dict.fromkeys(
        ("pin", "hmac", "salt", "wif", "mdp", "seed", "pasw", "pssword", "jelszo", "lozinka", "geslo", "losenord"), ()
    ),
    "kennwort": (),
    "senha": (),
    "contrase": (),
    "sessid": (),
    "sessionid": (),
    "session": ("id",),
    "connect.sid": (),
    "wachtwoord": (),
    "heslo": (),
    "haslo": (),
    "parola": (),
    "salasana": (),
    "adgangskode": (),
}
COMMANDS = (
    *("curl", "wget", "http", "xh ", "mysql", "maria", "redis", "mongo", "sqlcmd", "sqlplus", "bcp", "login"),
    *("ldap", "zip", "7z", "smb", "rpcclient", "mount", "securestring", "sudo -s", "chpasswd"),
    *("rclone", "htpasswd", "oathtool"),
    *("lftp", "twine", "snmp", "ssh-keygen", "etcdctl", "cqlsh", "winexe", "ipmitool", "isql", "exec"),
    *("rdesktop", "psexec", "winrm", "hydra", "mosquitto", "useradd", "vault", "usermod", "rar ", "openssl", "ncftp"),
)
# What reads a password from a pipe.
PIPED_TO = (
    *("gpg", "kinit", "cryptsetup", "restic", "borg", "heroku", "vercel", "wrangler", "cosign", "keyring", "firebase"),
    *("flyctl", "keepass", "kubeseal", "oathtool", "vncpasswd", "smbpasswd", "ssh-add", "az ", "pass insert"),
)
# Words that have to do with secrets, near which a value that could be nothing else is one.
NEARBY = (
    *("auth", "login", "logon", "signin", "sign_in", "log in", "log on", "crypt", "cipher", "hmac", "wallet", "mnemonic", "otp"),
    *("ftp", "smtp", "imap", "ldap", "sequelize", "connect", "datasource", "sql", "pdo", "jdbc", "keychain", "engine(", "cred"),
    *("pass", "secret", "token", "pw", "key", "user", "root", "admin", "ssh", "curl", "vpn", "fi", "wlan", "psk", "unlock"),
    *("smb", "winrm", "impacket", "<<<", ":"),
)
# What comes before a password with nothing but a blank between.
PASS_DIRECTIVES = ("password ", "passphrase ", "passcode ", "bindpasswd ", "pass ")
# Calls that take a password by its place.
CALLS = (
    "@tcp(",
    "@unix(",
    "@udp(",
    "pdo",
    "mysqli",
    "getconnection(",
    "connect(",
    "imap_open(",
    "login(",
    "sign",
    "authenticate(",
    "auth(",
    "credentials(",
    "_bind",
    "fernet(",
    "aesgcm(",
    "keyspec(",
    "cipheriv(",
    "crypt(",
    "cryptr(",
    "simplecrypto(",
    "cookie",
    "jwt.",
    *(
        "otp(",
        "otp.",
        "otp::",
        "authenticator.",
        "unhexlify(",
        "fromhex(",
        "newcipher(",
        "secretbox(",
        "poly1305(",
        "symmetrickey(",
    ),
    *("aes.new(", "des.new(", "des3.new(", "fish.new(", "arc4.new("),
    *(
        ".hash",
        "hash::",
        "hashpw(",
        "checkpw(",
        "word_hash",
        "wordhash",
        "hash_pass",
        "hashpass",
        "encoder",
        "_password(",
        "crypt.",
        "rfc2898",
        "pbkdf2",
        "derive",
        "scrypt",
        "keyspec",
    ),
    "hmac",
)
# What comes before a password or a token with a number in it: in commands, devices' settings and calls, and where a person
# tells one. Most of them are asked for only where the part stands that several share.
_GIVING_TEXT = """
    sqlldr bundle cracked unseal unlock radius tacacs secrets setuser zugangsdaten
    einmalcode einmal-code tigungscode verificatiecode weryfikacyjny wiederherstellungscode license licence
    clave senha kennwort adgangskode sifre jelszo nenosiri parola pasahitz pasvorto accounts geheimzahl
    lozinka zaporka salasana tunnussana contrasena chiave chararray community com2sec createuser raddb -secrets
    identifiant
"""
GIVING = (
    *_GIVING_TEXT.split(),
    *("token ", "_key ", ".key ", "-key ", '"keys', "logged in as"),
    *(
        "rman ",
        "exp ",
        "imp ",
        " on >",
        "sign in",
        "ssh in",
        "get in",
        "vpn",
        "contrasenya",
        "otp is",
        "pin ",
        "pin's",
        "pw's",
        "kata ",
        "code secret",
    ),
    *("digo de ", "digos de ", "code de ", "codes de ", "codice di ", "-macopt", "fernet key", "aes key", "cipher key"),
    *(
        "encryption key",
        "private key",
        "hmac key",
        "secret::encoded",
        "-password ",
        "puk",
        " seed ",
        "tan ",
        "tan:",
        "engangskode",
        "monouso",
        "usa e getta",
    ),
    *("usage unique", "de connexion", "pincode", "product code", "product key", "registration ", "activation "),
)
GIVING_WITH = (
    (
        "use ",
        ("use admin", "use root", "use user", "use test", "use demo", "use guest", "use ops", "use pi", "use deploy", "use svc"),
    ),
    ("using ", ("using admin", "using root")),
    ("try ", ("try admin", "try root", "poetry config")),
    ("pass", ("password\t", "_pass ", "passwd/", "mot de passe", "passord", "passphrase", "passcode")),
    ("cred", ("creds", "credential")),
    ("log", ("log in", "login", "logon")),
    ("(", ("client(", "search(", "api(", "init(", "configure(", "twilio(")),
    (" /", ("root /", "admin /", "administrator /", "postgres /", "ubuntu /", "oracle /", "guest /")),
    (":", ("u: ", "root:", "admin:", "guest:")),
    ("_", ("_pw ", "basic_auth ", "_code")),
    (
        "-",
        (
            "http-basic",
            "key-string",
            "-key ",
            "-from-literal",
            "sentry-cli",
            "proxy-auth",
            "put-parameter",
            "private-",
            "palavra-",
        ),
    ),
    (" -", (" -u ", " -t", " -l ", " -k", " -g", " -p ")),
    (" / ", ("smb", "ftp", "ldap", "sql", "curl", "ssh", "user", "root", "admin", "decrypt", "winrm", "smtp", "imap", "mail")),
    ("user ", (" using ",)),
    ("key", ("setapikey", "keychain", " key ")),
    ("crypt", ("crypt'", 'crypt"')),
    ("ord", ("lausenord", "losenord", "wagwoord", "wachtwoord", "kodeord")),
    ("slo", ("heslo", "geslo", "haslo")),
    ("dp", ("impdp", "expdp", "mdp")),
    (" config", ("composer config",)),
)
# What heads the column of a table, or stands before its cell.
BY_TABS = ("secret", "token", "pass", "pwd", "pin", "key", "pw", "true\t", "false\t")
# Where one gets in, who does, and what one does to get in.
GETTING_IN = (
    *("account", "login", "log in", "log on", "log_in", "logon", "logged", "logging", "sign in", "sign-in", "sign_in"),
    *(
        "signin",
        "signed",
        "signg",
        "signon",
        "sign on",
        "ssh in",
        "get in",
        "wi-fi",
        "wifi",
        "wlan",
        "cred",
        "zugangsdaten",
        "pincode",
    ),
)
TRIED_USERS = ("user", "test", "demo", "ops", "service", " pi", " sa")
USERS = ("root", "admin", "guest", "ubuntu", "oracle", "postgres", "support", "operator", "deploy", "svc")
TRYING = ("use ", "using ", "try ", "enter", "type")
# Where a rule looks that has no word of its own.
PLACES = (
    "priv ",
    "://",
    " on >",
    "-protocol:",
    "?k=",
    "&k=",
    " config ",
    "pin_",
    "pin-",
    "pininput",
    "pinfield",
    'pin"',
    "pin'",
    "pin]",
    "pin)",
    "key content",
)
TELLING_ALONE = ("y answer", "t answer", "y_answer", "t_answer", "y-answer", "t-answer", "y question", "setcookie")
CODES = (
    *("door", "gate", "alarm", "safe", "entry", "entrance", "garage", "locker", "lock", "building", "office", "unlock"),
    "access",
    *(
        "activation",
        "recovery",
        "backup",
        "rescue",
        "emergency",
        "verification",
        "security",
        "2fa",
        "mfa",
        "otp",
        "totp",
        "login",
    ),
    *("signin", "sign-in", "pairing", "scratch", "one-time", "time", " a"),
)
# The words for a password in other alphabets than that of English.
FOREIGN = (
    *(
        "hasło",
        "contraseña",
        "lösenord",
        "parol",
        "jelszó",
        "şifre",
        "mật khẩu",
        "парол",
        "κωδικ",
        "סיסמ",
        "كلمة",
        "رمز عبور",
    ),
    *(
        "पासवर्ड",
        "รหัสผ่าน",
        "密码",
        "密碼",
        "口令",
        "パスワード",
        "暗証番号",
        "비밀번호",
        "암호",
        "senha",
        "mot de passe",
        "→",
        "⇒",
        "—",
        "şifr",
        "šifr",
        "лозинк",
        "шифра",
        "пин",
        "passe",
        "비번",
        "პაროლ",
        "գաղտն",
        "گذرواژه",
        "پاس ورڈ",
        "পাসওয়ার্ড",
        "கடவுச்சொல்",
        "токен",
        "ключ",
        "密钥",
        "密鑰",
        "令牌",
        *("验证码", "驗證碼", "認証コード", "確認コード", "인증번호", "подтвержд"),
        "トークン",
        "토큰",
        "合言葉",
        "schlüssel",
        "clé api",
        "slaptažod",
        "lykilor",
        "رمز",
    ),
)
# What a person calls a random value that is told without a sign before it.
KEY_NOUNS = (
    "api key",
    "the key",
    "your key",
    "my key",
    "seal key",
    "master key",
    "new key",
    "token",
    "secret",
    "credential",
    "access key",
)
