"""A cheap look at a text: could it hold a secret at all?

It runs before anything is loaded, on every text that is recorded, so it is written for speed: a few passes in
C over the whole text, and Python only for the few places they point at.
"""

from operator import add

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
# Past this size the rules themselves are faster than looking for their beginnings one by one.
_LONG = 4_096
_NAMES = {
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
_COMMANDS = (
    *("curl", "wget", "http", "xh ", "mysql", "maria", "redis", "mongo", "sqlcmd", "sqlplus", "bcp", "login"),
    *("ldap", "zip", "7z", "smb", "rpcclient", "mount", "securestring", "sudo -s", "chpasswd"),
    *("rclone", "htpasswd"),
    *("lftp", "twine", "snmp", "ssh-keygen", "etcdctl", "cqlsh", "winexe", "ipmitool", "isql", "exec"),
    *("rdesktop", "psexec", "winrm", "hydra", "mosquitto", "useradd", "vault", "usermod", "rar ", "openssl", "ncftp"),
)
# What reads a password from a pipe.
_PIPED_TO = (
    *("gpg", "kinit", "cryptsetup", "restic", "borg", "heroku", "vercel", "wrangler", "cosign", "keyring", "firebase"),
    *("flyctl", "keepass", "kubeseal", "oathtool", "vncpasswd", "smbpasswd", "ssh-add", "az ", "pass insert"),
)
# What comes before a password with nothing but a blank between.
_PASS_DIRECTIVES = ("password ", "passphrase ", "passcode ", "bindpasswd ", "pass ")
# Calls that take a password by its place.
_CALLS = (
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
    "hmac",
)
# What comes before a password or a token with a number in it: in commands, devices' settings and calls, and where a person
# tells one. Most of them are asked for only where the part stands that several share.
_GIVING_TEXT = """
    sqlldr bundle cracked unseal unlock radius tacacs secrets setuser zugangsdaten
    clave senha kennwort adgangskode sifre jelszo nenosiri parola pasahitz pasvorto accounts geheimzahl
    lozinka zaporka salasana tunnussana contrasena chiave chararray community com2sec createuser raddb -secrets
"""
_GIVING = (
    *_GIVING_TEXT.split(),
    *("token ", "_key ", ".key ", "-key ", '"keys', "logged in as"),
    *("rman ", "exp ", "imp ", " on >", "sign in", "ssh in", "otp is", "pin ", "pin's", "pw's", "kata ", "code secret"),
)
_GIVING_WITH = (
    (
        "use ",
        ("use admin", "use root", "use user", "use test", "use demo", "use guest", "use ops", "use pi", "use deploy", "use svc"),
    ),
    ("using ", ("using admin", "using root")),
    ("try ", ("try admin", "try root", "poetry config")),
    ("pass", ("password\t", "_pass ", "passwd/", "mot de passe", "passord", "passphrase", "passcode")),
    ("cred", ("creds", "credential")),
    ("log", ("log in", "login", "logon")),
    ("(", ("client(", "search(", "api(", "init(", "configure(")),
    ("\t", ("secret\t", "token\t")),
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
    (" -", (" -u ", " -t", " -l ", " -k", " -g")),
    ("key", ("setapikey", "keychain", " key ")),
    ("crypt", ("crypt'", 'crypt"')),
    ("ord", ("lausenord", "losenord", "wagwoord", "wachtwoord", "kodeord")),
    ("slo", ("heslo", "geslo", "haslo")),
    ("dp", ("impdp", "expdp", "mdp")),
    (" config", ("composer config",)),
)
_TELLING_ALONE = ("y answer", "t answer", "y question", "setcookie")
_CODES = frozenset(
    (
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
        *("signin", "sign-in", "pairing", "scratch", "one-time", "time"),
    )
)
# The words for a password in other alphabets than that of English.
_FOREIGN = (
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
_KEY_NOUNS = (
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
_INVISIBLE = "\x00\xad\u200b\u200c\u200d\u2060\ufeff"
_RUN_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/=.~%$:@"
_AS_RUNS = bytes(97 if byte in _RUN_CHARS else 32 for byte in range(256))
_AS_WORDS = bytes(byte if byte in _RUN_CHARS else 32 for byte in range(256))
SHORTEST_TOKEN = 15
_RUN = b"a" * SHORTEST_TOKEN
_DIGITS = b"0123456789"
_SIGNS = b"!#$%^&*+~"
_HEX = b"0123456789abcdef-"
# Marks by their first two characters: a short text has few pairs of characters, and only their marks can be in it.
_BY_PAIR: dict[str, list[str]] = {}
for _mark in MARKS:
    _BY_PAIR.setdefault(_mark[:2], []).append(_mark)
_PAIRS = frozenset(_BY_PAIR)
_MANY_PAIRS = 600


def may_hold_secret(text: str) -> bool:
    """Tell whether a text, or the value it is the JSON of, could hold a secret; False is certain."""
    if len(text) > _LONG:
        return True
    if len(text) < SHORTEST_TOKEN and is_one_word(text):
        return False  # too short for a token, and nothing stands before it
    if "\\" in text or "\n" in text or "\x1b" in text or "%" in text or "&" in text or not text.isascii():
        if _is_disguised(text):
            return True
        text = _flattened(text)
    low = text.lower()
    if (
        "=" in text
        or ":" in text
        or '"' in text
        or ">" in text
        or "`" in text
        or "@" in text
        or " -" in text
        or "--" in text
        or " '" in text
        or "('" in text
        or "|" in text
        or "ENV " in text
    ):
        if _has_name(text, low) or _has_place(text, low):
            return True
    elif "$" in text or "{" in text or ("pass" in low and ("passw" in low or "repass" in low)):
        return True
    data = text.encode("latin-1", "replace")
    if _directs(low) or _tells(text, low, data):
        return True
    return _RUN in data.translate(_AS_RUNS) and _has_token(data, low)


def is_one_word(text: str) -> bool:
    """Tell whether a text is a single word, as keys and ids are."""
    return text.replace("-", "").replace("_", "").isalnum() and text.isascii()


def _directs(low: str) -> bool:
    """Tell whether a word stands in the text after which a password may come without a sign."""
    # Written out, since this is asked of every text; a single character is found much faster than a word.
    if "pass" in low and any(map(low.__contains__, _PASS_DIRECTIVES)):
        return True
    if "auth" in low and ("auth " in low or "masterauth" in low):
        return True
    if "x" in low and ("setx " in low or "expect " in low):
        return True
    if "y" in low and ("identify " in low or "community" in low):
        return True
    if "w" in low and ("pw " in low or "pwd " in low or "wpa" in low):
        return True
    if "/" in low and ("/p:" in low or "/rp " in low):
        return True
    if ("<" in low and "<<<" in low) or ("q" in low and "rabbitmqctl " in low) or ("v" in low and "setenv " in low):
        return True
    if ("_" in low and "fastcgi_param " in low) or ("-" in low and "samba-tool" in low):
        return True
    if "log" in low and ("login " in low or "sonar.login" in low):
        return True
    if "*" in low and (" * " in low or "\t*\t" in low) and low.rstrip()[-1] == "*":
        return True
    if "obscure " in low or "user-secrets" in low:
        return True
    return "net use" in low or "secret " in low or "enable " in low or "username " in low


def _tells(text: str, low: str, data: bytes) -> bool:
    """Tell whether somebody may be telling a password or a code, in any language."""
    if ("answer" in low or "question" in low or "setcookie" in low) and any(map(low.__contains__, _TELLING_ALONE)):
        return True
    if len(data.translate(None, _DIGITS)) == len(data):
        # A sign does for a number only in the sentences of other alphabets: those of English are full of both.
        return not text.isascii() and len(data.translate(None, _SIGNS)) != len(data) and any(map(low.__contains__, _FOREIGN))
    if any(map(low.__contains__, _GIVING)) or (" code" in low and _names_code(low)):
        return True
    for shared, words in _GIVING_WITH:
        if shared in low and any(map(low.__contains__, words)):
            return True
    if ("pass" in low or "pw" in low) and ("password" in low or " as " in low or "'s" in low or " ist " in low or " - " in low):
        return True
    if text.isascii():
        return False
    return "password" in low or any(map(low.__contains__, _FOREIGN))


def _names_code(low: str) -> bool:
    return any(part.rpartition(" ")[2] in _CODES for part in low.split(" code")[:-1])


def _is_disguised(text: str) -> bool:
    """Tell whether a text writes characters in a way that takes real work to undo."""
    if "\\u0" in text and "\\u0" in text.replace("\\u001b[", ""):
        return True
    if "%" in text and any(code in text for code in ("%2", "%3", "%4", "%5")):
        return True
    if "&" in text and any(entity in text for entity in ("&quot;", "&apos;", "&#")):
        return True
    if "\\x" in text or "\\033" in text or "\\e[" in text:
        return True
    return (not text.isascii() and any(char in text for char in _INVISIBLE)) or "\x00" in text


def _flattened(text: str) -> str:
    """Undo colours, escapes and line breaks, roughly but never hiding anything."""
    if "\\" in text:
        while "\\\\" in text:
            text = text.replace("\\\\", "\\")
        text = text.replace("\\u001b", "\x1b").replace("\\n", "\n").replace("\\r", "\n").replace("\\t", " ").replace("\\", "")
    if "\x1b" in text:
        first, *rest = text.split("\x1b[")
        text = (first + "".join([piece.lstrip("0123456789;:?")[1:] for piece in rest])).replace("\x1b", "")
    if "\n" in text or "\r" in text:
        text = "".join([line.strip() for line in text.splitlines()])
    return text


def _has_name(text: str, low: str) -> bool:
    """Tell whether a name that announces a secret stands before something that gives it a value."""
    if text.count(":") == 1 and "=" not in text and '"' not in text and " -" not in text:
        # One colon is a sentence; what could be a name is right before it.
        return "passw" in low or _is_near(text, low, text.find(":"))
    return any(_is_given(text, low, stem) for stem in filter(low.__contains__, _NAMES))


def _is_near(text: str, low: str, place: int) -> bool:
    first = max(0, place - 64)
    text, low = text[first : place + 1], low[first : place + 1]
    return any(_is_given(text, low, stem) for stem in filter(low.__contains__, _NAMES))


def _is_given(text: str, low: str, stem: str) -> bool:
    start = low.find(stem)
    while start >= 0:
        end = start + len(stem)
        if not _is_inside_word(text, low, stem, start, end) and _is_followed(text, low, start, end):
            return True
        start = low.find(stem, end)
    return False


def _is_inside_word(text: str, low: str, stem: str, start: int, end: int) -> bool:
    """Tell whether the stem only happens to be part of a word, as in `passed`, `tokens`, `monkey`."""
    if stem in ("key", "pat") and not (start and (text[start - 1].isalnum() or text[start - 1] in "_-. ")):
        return True
    after = text[end : end + 2]
    if not after[:1].isalpha() or low.startswith(_NAMES[stem], end):
        return False
    return after[0].isupper() == text[end - 1].isupper() and not (after[0].isupper() and after[1:].islower())


def _is_followed(text: str, low: str, start: int, end: int) -> bool:
    """Tell whether an operator, a quote or a flag's value comes soon after a name."""
    ahead = text[end : end + 64]
    if any(mark in ahead for mark in "=:\"'`>,(|{") or " is" in ahead or " -" in ahead:
        return True
    behind = low[max(0, start - 64) : start]
    return "-" in behind or "env" in behind or "arg" in behind or "set" in behind


def _has_place(text: str, low: str) -> bool:
    """Tell whether the text has a place where secrets stand without a name: a URL, a command, a hash."""
    if "@" in text and ("://" in text or "impacket" in low or ".py " in low or "oracle:" in low or "sqlplus" in low):
        return True
    if "$" in text and any(map(text.__contains__, ("$1$", "$5$", "$6$", "$2", "$y$", "$7$", "$a", "$sc", "$pb", "$bc"))):
        return True
    if "{" in text and any(map(text.__contains__, ("{SHA", "{SSHA", "{MD5}", "{SMD5}", "{CRYPT}"))):
        return True
    if ("# " in text or "// " in text) and any(map(low.__contains__, ("passw", "pwd", "secret", "token", " key"))):
        return True
    if '" "' in text or " * " in text or "<key>" in text or ("*" in text and ("\t*" in text or '" *' in text or "  *" in text)):
        return True
    if (count := text.count(":")) > 3 and _has_port(text):
        return True
    if count > 1 and _has_port_and_user(text):
        return True
    if "key=" in low and ("?key=" in low or "&key=" in low):
        return True
    if "(" in text and any(map(low.__contains__, _CALLS)):
        return True
    if (" -" in text or "| " in text) and any(map(low.__contains__, _COMMANDS)):
        return True
    return "| " in text and any(map(low.__contains__, _PIPED_TO))


def _has_port(text: str) -> bool:
    return any((len(part) in (4, 5) and part.isdigit()) or part == "*" for part in text.split(":"))


def _has_port_and_user(text: str) -> bool:
    """Tell whether a user's name follows a port, as in `smtp.example.org:587 ana:`."""
    return any(part[:2].isdigit() and len(part.split()) == 2 for part in text.split(":")[1:-1])


def _has_token(data: bytes, text: str) -> bool:
    """Tell whether one of the long runs of characters could be a token."""
    runs = [word for word in data.translate(_AS_WORDS).split() if len(word) > 14]
    words = list(filter(_is_unusual, runs))
    if not words:
        # A digest is none, but a key that is told may look like one.
        return any(len(run) in (32, 48, 64) for run in runs) and any(map(text.__contains__, _KEY_NOUNS))
    if "bearer" in text or any(map(text.__contains__, _KEY_NOUNS)):
        return True
    low = b" ".join(words).lower().decode("latin-1")
    return any(len(word) > 39 or _is_base64(word) for word in words) or _has_mark(low)


def _has_mark(low: str) -> bool:
    if len(low) > _MANY_PAIRS:
        return any(map(low.__contains__, MARKS))
    pairs = _PAIRS.intersection(map(add, low, low[1:]))
    return any(mark in low for pair in pairs for mark in _BY_PAIR[pair])


def _is_unusual(word: bytes) -> bool:
    """Tell whether a run is anything but a path, an identifier in lower case or a digest."""
    low = word.lower()
    if low == word and len(word) < 40 and len(word.translate(None, _DIGITS)) == len(word):
        return b"bearer" in low
    return bool(low.strip(_HEX)) or (b"-" in word and len(word) != 36)


def _is_base64(word: bytes) -> bool:
    """Tell whether four groups in a row, at any place, decode to plain text."""
    for part in word.replace(b":", b"=").replace(b".", b"=").split(b"="):
        if len(part) > 15 and part != part.lower() and part != part.upper():
            return True
    return False
