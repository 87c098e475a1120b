"""The words of which one stands in whatever is found, gathered from the rules, the names and the sentences of all languages."""

import textwrap
from collections.abc import Iterable

from decklog.redact.rules.rule import Rule
from decklog.redact.rules.table import AS_WRITTEN, PLACED, TOOLS

# Part of any text: what else stands in all that such a rule finds is among the places below, or the look asks for it by itself.
_COMMON_TEXT = """
    " $ ' * - -g -k -l -n -p -t -u -x -y 0x 7z : <( ={ > ]: ac add auth backup begin box client command config conn connect
    default eap enter exp expect false field g- hash host http ike imp is k= key keys mount name net new pass pic pin protocol rar
    recovery save secret secrets security session set su token true type u: use user value was words xh your { {{
"""
COMMON = frozenset(_COMMON_TEXT.split())
# So short and so frequent where there are passwords that the look asks for them before all others.
AT_ONCE = ("pass", "pw")
# Of these rules, with a blank written as `^`.
_PLACES = """
    ^-x^ ^-y^ ^-p ^-hp ^-w ^-k^ ^-k= ^-t^ ^-t= ^-u^ -u" -u' :0x =0x ^0x "0x '0x ^<( =<( ?k= &k= u:^ xh^ http^ https^ eap^" exp^
    imp^ is^your as^your net^use connect^to^ config^host bundle^config ^config^ ^*^ ^*" -value^ -value= -data^ -data=
    put-parameter keyvault {noop} {plain {cleartext} codecov doctl coveralls travis nuget stripe vercel netlify sentry-cli
    hcloud glab hasher hash:: ^on^> -protocol: setx^ setenv^ fastcgi_param^ ^env^ ^arg^ /p: /rp^ ^/p^ wpa obscure^
    encryption: ^-b "^" @tcp( @udp( @unix( pinfield pininput secret^set confirm^your authenticate fromhex
    unhexlify decodestring
"""
# What names have that announce a secret, and the words beside which a made value is one.
_NAMES = """
    psk psw pword pasw pawd ssword jwt cred bearer pepper salt cookie sessid sess_id sess-id sessionid session_id session-id
    connect.sid mdp seed vpn wlan wi-fi wifi wireless licen ftp smtp imap sequelize datasource pdo jdbc account( database(
    engine( pragma pptpd l2tpd chap logon log_on log-on login log_in log-in signin sign_in sign-in sign-on basic community
    tochararray
"""
# How a person tells a code, an answer or a key, and what prints one below.
_TOLD = """
    serial:^ serial^key setup^key entry^key lment^key tan^ tan: puk a^code einmal tigungscode digo^de digos^de code^de
    codes^de codice^di codice^mono codice^usa verificatiecode weryfikacyjny usage^unique engangskode wiederherstellungscode
    secret^answer secret_answer secret-answer security^answer security_answer security-answer answer^to op^read rbw^get
    bw^get diceware genkey genpsk urandom base64^-d base64^--d phx.gen printenv terraform^output tofu^output stack^output
    configure^get config:get config^get -field recovery^code
"""
# With a question mark for each letter that one alphabet lacks.
_LANGUAGES = """
    has?o haslo mot^de contrase contrasinal senha palavra- wachtwoord senord kennwort clave adgangskode salasana parol parool hesl
    lozink geslo zaporka tunnussana slapta nenosiri kata^la kata^sa pasahitz lykilor wagwoord pasvorto kodeord code^secret
    geheimzahl pincode schl cl\xe9^api cl?^api cle^api chiave jelsz ?ifr sifr m?t^kh?u phrase frase identifiant zugangsdaten
    zug\xe4nge
"""
_OTHERS = f"{_PLACES} {_NAMES} {_TOLD} {_LANGUAGES}"
# The most frequent pairs of characters in sentences, beginning with the most frequent one.
_FREQUENT = (
    "s e  t atht  ihed  o, onanerre wes sitatn inhastnd `orr teena as ndeedneis c r f` . y ``melo becsenogetswh d l pf  mcoof"
    "levetant: g unarckchrongogoutoh  etieanstrhoal -keo otruac homfoow| agma |ficeet--libeioklrihill grass- olexamprl idlaso"
    "rss,adctdsai; paskwisapeile,evayimelnc`-emsiiewonaee##wautopick rdoooss.ldmorypourcaby krtdiefirxtodwew m ksptusulmpsh u"
    "'sovepewdolsbagrt`mibo ## rkt.eydaake.wn=  =plapgagid,oct,cl] **rgr,tt`,)  [ysigfep upfaokwr *vifrn,suum_ie`mmn` v (crau"
)
_PAIRS = [_FREQUENT[place : place + 2] for place in range(0, len(_FREQUENT), 2)]
_EVEN, _ODD, _PAIR, _WIDTH = 0, 1, 2, 124


def of_rule(rule: Rule) -> Iterable[str]:
    """Give the words of which one stands in whatever a rule finds."""
    return [f"{name}(" for name in rule.before] if rule.before else rule.keywords


def words() -> list[str]:
    """Give all words, without those that have another one in them, or one that is asked for at once."""
    of_rules = {word for rule in (*PLACED, *TOOLS, *AS_WRITTEN) for word in of_rule(rule)} - COMMON
    found = sorted({*of_rules, *(word.replace("^", " ") for word in _OTHERS.split())})
    return [word for word in found if not any(other in word for other in (*found, *AT_ONCE) if other != word)]


def keywords_py() -> str:
    """Give the module that has every word under two pairs of its characters: one for each way it may lie in a text."""
    pairs: dict[str, list[str]] = {}
    for word in words():
        for pair in dict.fromkeys(_rarest(word, first, pairs) for first in (_EVEN, _ODD)):
            pairs.setdefault(pair, []).append(word)
    lines = " ".join(",".join((pair, *pairs[pair])).replace(" ", "^") for pair in sorted(pairs))
    body = textwrap.wrap(lines, _WIDTH, break_on_hyphens=False, break_long_words=False)
    return _MODULE.replace("BODY", "\n".join(f"    {line}" for line in body))


def _rarest(word: str, first: int, known: dict[str, list[str]]) -> str:
    """Give the rarest of the pairs that a word has from a place on, and of those the one that fewest other words have."""
    pairs = [word[place : place + _PAIR] for place in range(first, len(word) - 1, _PAIR)]
    return min(pairs, key=lambda pair: (_frequency(pair), len(known.get(pair, ())), pair))


def _frequency(pair: str) -> int:
    return len(_PAIRS) - _PAIRS.index(pair) if pair in _PAIRS else 0


_MODULE = '''"""The words of which one stands in whatever is found, asked for before any rule is loaded.

Written by `make docs` from the rules, the names and the languages; a test keeps it true.
"""

# Pairs of characters, each with the words that are looked for where a text has the pair, and with a blank written as `^`. Where a
# text is taken apart into pairs, a word may begin with one or in the middle of one: it stands with a pair for either.
_TEXT = r"""
BODY
"""
_ALL = "\\n".join(_TEXT.split()).replace("^", " ").split("\\n")
# Counted as the pairs of a text are.
_PAIRS = memoryview("".join([line[:2] for line in _ALL]).encode("latin-1")).cast("H").tolist()
BY_PAIR = dict(zip(_PAIRS, [line[3:] for line in _ALL], strict=True))
PAIRS = frozenset(BY_PAIR)
'''
