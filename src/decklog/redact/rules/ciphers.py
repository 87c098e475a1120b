"""Keys of ciphers, of wallets and of one-time codes, told by the call or the command that takes them."""

from decklog.redact.rules.rule import Rule, rule

# A call that turns what is written into bytes; one that fetches a key by its name is none of them.
_TURNED = (
    r"(?:(?:new[ \t]+)?[\w.():\[\]]{0,48}?(?i:decode(?:_?(?:hex|base64|string))?|from_?hex(?:string)?|from_?base64(?:string)?"
    r"|unhexlify|parse_?hex(?:binary)?|parsebase64binary|b64decode|hex2bin|atob|buffer\.from)\([ \t]*){1,2}"
)
# Bytes one by one, as a dump or an array has them.
_BYTES = r"(?:0x)?[0-9a-fA-F]{2}(?:[ \t]?[ :,-]\s{0,4}(?:0x)?[0-9a-fA-F]{2}){15,}"
_ENCODED = r"[A-Za-z0-9+/=_-]{16,}"
_BASE32 = r"(?:[A-Z2-7]{16,}|[a-z2-7]{16,})=*"

CIPHERS: tuple[Rule, ...] = (
    rule(
        "signing-secret",
        "hmac cipher",
        _ENCODED,
        keep=rf"(?:createHmac|create(?:Dec|C)ipheriv)\([ \t]*[\"'][\w-]{{1,32}}[\"'],[ \t]*{_TURNED}[\"']",
        until=r"[\"']",
    ),
    rule(
        "signing-secret",
        "fernet aesgcm keyspec keyfor( .new( newcipher hmac secretbox poly1305 symmetrickey",
        _ENCODED,
        keep=r"(?:SecretKeySpec|hmacShaKeyFor|Fernet|AES(?:GCM|CCM|SIV)|(?:AES|DES3?|Blowfish|ARC4)\.new|hmac\.[nN]ew"
        r"|aes\.NewCipher|SecretBox|ChaCha20Poly1305|SymmetricKey)\("
        rf"(?:[\w.]{{1,24}},|[a-z]+:)?[ \t]*{_TURNED}b?[\"']",
        until=r"[\"']",
    ),
    rule(
        "signing-secret",
        "::new",
        _ENCODED,
        keep=rf"(?:Aes\w{{1,16}}|X?ChaCha20\w{{0,12}}|Hmac(?:::)?<\w{{1,16}}>)::new\w{{0,16}}\([ \t]*&?{_TURNED}[\"']",
        until=r"[\"']",
    ),
    rule(
        "signing-secret",
        "openssl_encrypt openssl_decrypt",
        r"[^\"'\n]{8,}",
        keep=rf"openssl_(?:en|de)crypt\([^,\n]{{1,80}},[ \t]*[\"'][\w-]{{1,32}}[\"'],[ \t]*(?:{_TURNED})?[\"']",
        until=r"[\"']",
    ),
    rule(
        "encryption-key",
        "key schl clave chiave psk",
        _BYTES,
        keep=r"(?i:(?:(?:secret|aes|private|encryption|decryption|master|session|hmac_|shared|cipher|symmetric|signing|t?des|3des|chacha20"
        r"|network|nwks|app|link|transport|unlock|firmware|device|root|wrapping|geheim\w{0,4})[\w -]{0,16}?"
        r"(?:keys?|schl.{1,2}ssel)|(?:clave|chiave)(?: (?:secreta|segreta|aes))?|psk"
        r"|(?:\bkey|schl.{1,2}ssel)[ ,(_-]{1,2}(?:in |as |als )?(?:hex|bytes|raw)\b\)?)"
        r"(?:[ ,(_-]{1,2}(?:in|as|hex|hexadecimal|bytes?|raw|value|material|is|was"
        r"|the|\d{2,3}|bits?|encoded|dump|here|en|als|esadecimale)\b\)?){0,5}"
        r"[ \t]*(?:\[\w{0,24}\][ \t]*)?(?:[:=]|->|is|ist|es)[ \t]*[\"'{\[(<]{0,2}\s{0,8})",
        until=r"(?:[^\w]|$)",
        glued=True,
    ),
    rule("command-password", "-macopt", r"[^\s\"']{8,}", keep=r"-macopt[ \t]+[\"']?(?:hex)?key:", glued=True),
    rule("signing-secret", "newcipher", r"[^\"`\n]{16,}", keep=r"\.NewCipher\(\[\]byte\([\"`]", until=r"[\"`]", glued=True),
    rule(
        "command-password",
        "openssl",
        r"[0-9a-fA-F]{16,}",
        keep=r"openssl[ \t]+[\w-]+[ \t][^\n|;&]{0,120}?-K[ \t]+[\"']?",
    ),
    rule(
        "otp-seed",
        "oathtool",
        r"[A-Za-z0-9]{16,}=*",
        keep=r"oathtool(?:[ \t]+-{1,2}[\w-]+(?:=\w{1,10}|[ \t]\d{1,3})?){1,6}[ =\t]+[\"']?",
    ),
    rule(
        "otp-seed",
        "totp hotp authenticator secret::encoded",
        _BASE32,
        keep=r"(?i:(?:[th]otp(?:(?:\.|::)(?:new|now|at|verify|create|generate(?:_?code)?|of|parse))?"
        r"|authenticator\.(?:generate|check|verify)|Secret::Encoded)\([ \t]*b?[\"'])",
        until=r"[\"']",
    ),
    rule(
        "bitcoin-key",
        "privkey priv_key wif",
        r"[59KLc][1-9A-HJ-NP-Za-km-z]{50,51}",
        keep=r"(?i:(?:(?:dump|import)?priv_?key|\bwif\b)[^\n]{0,24}?[\s\"':=>(])",
        until=r"(?:[^\w]|$)",
        glued=True,
    ),
    # Words joined by a sign, which the call beside them says are a phrase to get in by.
    rule(
        "passphrase",
        "passphrase password",
        r"[a-z]{3,12}(?:(?:-[a-z]{3,12}){3,}|(?:_[a-z]{3,12}){3,}|(?:\.[a-z]{3,12}){3,})",
        keep=r"(?i:pass(?:word|phrase)\w{0,16}[ \t]*(?::[ \t]*[\w<>&':]{1,32}[ \t]*)?=[ \t]*\w{1,32}::\w{1,24}\([ \t]*\")",
        until=r"\"",
        glued=True,
    ),
)
