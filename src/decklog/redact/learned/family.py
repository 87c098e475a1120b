"""The words of a line that have to do with secrets, each by its group."""

from functools import cached_property
from re import Match

from decklog.prepared import prepared
from decklog.redact.patterns.pattern import Pattern
from decklog.redact.view import to_bytes

_WORDS = (
    r"(?i)(?P<P>pass(?:word|wort|wd|phrase|code|key|ord)|pwd|(?<![a-z])pw(?![a-z])|passw|(?<![a-z])pass(?![a-z])|psk|kennwort|senha"
    r"|contrase|mot de passe|(?<![a-z])mdp(?![a-z])|clave|has[łl]o|wachtwoord|l[öo]senord|adgangskode|salasana|parol"
    r"|hesl[oa]|lozink|geslo|jelsz|[şs]ifre|mật khẩu|sandi|парол|κωδικ|סיסמ|كلمة|पासवर्ड|รหัสผ่าน|密码|密碼|口令"
    r"|パスワード|비밀번호|암호|暗証)"
    r"|(?P<S>secret|geheim|credential|(?<![a-z])creds?(?![a-z])|zugangsdaten|identifiant|credencia)"
    r"|(?P<T>token|bearer|jwt|api.?key|access.?key|priv(?:ate)?.?key|licen[cs]e|signing|webhook)"
    r"|(?P<C>(?<![a-z])pins?(?![a-z])|(?<![a-z])puk(?![a-z])|otp|(?<![a-z0-9])2fa(?![a-z0-9])|mfa|(?<![a-z])codes?(?![a-z])|kode?(?![a-z])|código|codice|код"
    r"|recovery|backup|one.time|authenticator|unlock|验证码|認証)"
    r"|(?P<X>crypt|cipher|hmac|(?<![a-z])aes|wallet|mnemonic|seed|keystore|unseal|(?<![a-z])salt|pepper|(?<![a-z])keys?(?![a-z])"
    r"|[a-z_]key(?![a-z])|schl[üu]ssel|chiave|cl[ée](?![a-z])|ключ|密钥|combination|combo)"
    r"|(?P<L>log.?[io]n|sign.?in|auth|account|(?<![a-z])user|vpn|wi-?fi|wlan|ssid|connect|ldap|smtp|imap|(?<![a-z])ftp|ssh|rdp|vnc"
    r"|admin|root)"
)
FAMILY = prepared(_WORDS)
_AROUND = prepared(r"\(\?<?![^)]*\)")
_NAMED = prepared(r"\(\?P<\w>")
_FAR = prepared(r"[^\x00-\xff]")
# Each stands for a letter of the alphabet where case does not matter, and is none of it in the bytes.
STAND_FOR_LETTERS = ("\u0130", "\u0131", "\u017f", "\u212a")


class _Starts:
    """Where a word of the family may begin, found without trying each of them at every letter."""

    @cached_property
    def pattern(self) -> Pattern:
        """Give the words whatever stands around them, with a question mark for what is no byte."""
        return Pattern(_FAR.sub(r"\?", _NAMED.sub("(?:", _AROUND.sub("", _WORDS))))


_STARTS = _Starts()


def families(line: str) -> list[Match[str]]:
    """Give the words of a line that have to do with secrets."""
    if not line.isascii() and any(map(line.__contains__, STAND_FOR_LETTERS)):
        return list(FAMILY.finditer(line))
    # In bytes, an accented letter is not the same as its capital.
    find, data = _STARTS.pattern.find, to_bytes(line if line.isascii() else line.lower())
    words, place = [], find(data, 0)
    while place is not None:
        word = FAMILY.match(line, place[0])
        if word:
            words.append(word)
        place = find(data, word.end() if word else place[0] + 1)
    return words


def is_in_family(text: str) -> bool:
    """Tell whether a text has a word in it that has to do with secrets."""
    return len(families(text)) > 0
