"""Passwords that are told in other languages than English: `hasło: …`, `le mot[ _]de[ _]passe est …`, `密码是 …`."""

from collections.abc import Iterator

from decklog.prepared import prepared
from decklog.redact import lookalikes, made, phrases, values
from decklog.redact.patterns.pattern import Span
from decklog.redact.view import Found, View

# The bytes that the matcher reads have a question mark for every letter that one alphabet lacks.
WORDS = (
    r"has[?l]o|contrase[\xf1\xd1n]|mot[ _]de[ _]passe|passwort|kennwort|senha|palavra-(?:passe|chave)|wachtwoord"
    r"|l[\xf6\xd6o]senord|passord"
    r"|\bclave|\bmdp|adgangskode|salasana|parol[a?e]|parool|hesl[oa]|lozink|geslo|zaporka|tunnussana|slapta[?]od"
    r"|nenosiri|kata laluan"
    r"|pasahitz|contrasinal|lykilor|wagwoord|pasvorto|kodeord|code secret|geheimzahl|pincode|schl[\xfc\xdcu]ssel"
    r"|cl[\xe9e] (?:d.)?api|chiave"
    r"|jelsz[\xf3\xd3o]|[?s]ifr[ea?]|m[?]t kh[?]u|kata sandi"
    r"|phrase secr|phrase de passe|frase (?:de (?:paso|contra)|se[gc]ret)|frase-senha"
)
_STARTS = prepared(f"(?i:{WORDS})")
# English words for one that a sentence of another language has: `la password del server è …`, `password → …`.
_BORROWED = (b"password", b"pass", b"pwd", b"pw")
LEADING = (
    r"[ \t]*[?\x97]| (?:\xe8|[ei][sr]?t? |d[aeiou]|p[aeo]|f[?\xf6\xfc]|v[ao]|t[io]|ch[ei]|prov|temp|ini[tcz]|nuov|nov[ao]|nue)"
)
_LEADING = prepared(LEADING.encode())
_OTHER = (
    *(
        "парол",
        "Парол",
        "κωδικ",
        "Κωδικ",
        "סיסמ",
        "كلمة",
        "رمز",
        "पासवर्ड",
        "รหัสผ่าน",
        "лозинк",
        "Лозинк",
        "шифра",
        "пин-код",
        "ПИН",
    ),
    *(
        "密码",
        "密碼",
        "口令",
        "パスワード",
        "暗証番号",
        "비밀번호",
        "암호",
        "비번",
        "პაროლ",
        "գաղտնաբառ",
        "گذرواژه",
        "پاس ورڈ",
        "পাসওয়ার্ড",
    ),
    *("கடவுச்சொல்", "пасс", "токен", "Токен", "ключ", "Ключ", "密钥", "密鑰", "令牌", "トークン", "토큰", "合言葉"),
    *("验证码", "驗證碼", "認証コード", "確認コード", "인증번호", "подтвержден"),
)
_OTHER_WORD = prepared("|".join(_OTHER))
_LETTERS = prepared(rb"\?+")
_WORD = (
    r"parola d'ordine|"
    r"clave|mdp|has[łl]o|contrase[ñn](?:a|ya)|mot[ _]de[ _]passe|passwort|kennwort|senha|palavra-(?:passe|chave)|wachtwoord"
    r"|l[öo]senord(?:et)?"
    r"|passordet|passord|adgangskoden?|zaporka|tunnussana|slaptažodis|nenosiri|kata laluan|pasahitza|contrasinal"
    r"|lykilorðið|lykilorð|wagwoord"
    r"|pasvorto|kodeord(?:et)?|code secret|geheimzahl|pincode"
    r"|salasana|parol[aăeė]\w{0,3}|parool|hesl[oa]|lozinka|geslo|jelsz[óo]\w{0,3}|[şsš]ifr[eaə]\w{0,3}"
    r"|mật khẩu|kata sandi|(?:password|pass|pwd|pw)(?= (?:è|e|est|es|ist|er)\b|[ \t]*[→⇒—]"
    r"| (?:d[aeiou]\w{0,3}|per|para|pour|po|för|für|v[ao][nomr]+|til|till)\b)"
    r"|парол\w{1,5}|пасс|лозинк\w{1,4}|шифра|пин-код|пин|κωδικ[όο]ς|סיסמ[הא]|كلمة (?:المرور|السر)|رمز(?: عبور)?|گذرواژه"
    r"|پاس ورڈ|पासवर्ड|รหัสผ่าน"
    r"|验证码|驗證碼|認証コード|確認コード|인증번호|подтвержден\w+"
    r"|密码|密碼|口令|パスワード|暗証番号|合言葉|비밀번호|암호|비번|პაროლი|գաղտնաբառը?|পাসওয়ার্ড|கடவுச்சொல்"
)
_KEY_WORD = r"schl[üu]ssel|cl[ée] (?:d['’])?api|chiave(?: api)?|clave api|токен|ключ|密钥|密鑰|令牌|トークン|토큰"
_COPULA = (
    r"(?<![a-z])(?:ist|war|lautet|c'est|est|était|es|era|é|è|is|was|är|var|er|on|jest|to|este|je|van|là|это|е|є|adalah|ialah|yra|ir|da|estas|eshte"
    r"|için|está|ligt|står|ser[áà]|sarà|wird|bleibt|reste|është|olup)(?![a-z-])"
    r"|—|–|->|→|⇒|(?:改|变|變|换|換|设|設)(?:成|为|為)了?|是|为|為|は|는|은|هي|هو|است|היא|הוא|है|คือ|είναι|არის|হল|হলো"
)
_NOW = (
    r"(?:jetzt|nun|ab sofort|nunmehr|ora|adesso|ahora|maintenant|désormais|dorénavant|nu|nå|nyt|teraz|obecnie|agora|nyní|teď|acum"
    r"|şimdi|now|still)(?![^\W_])"
)
# What it was changed to, where the verb says so before it.
_CHANGED = (
    r"mudou para|passou a ser|cambió a|è cambiata in"
    r"|foi (?:trocad|alterad|mudad|redefinid)[ao] para|(?:fue|ha sido) cambiad[ao] (?:a|por)"
    r"|è stat[ao] (?:cambiat|impostat)[ao] (?:in|su|a)|a été (?:changé|modifié|remplacé|réinitialisé)e? (?:en|par|à|pour)"
    r"|(?:che )?(?:è|é) divent(?:at)?[ao]|zosta[łl]o? (?:zmienion|ustawion)[eoa] na|wurde auf|изменён на|изменен на"
)
_TIE = rf"(?:(?:{_NOW}[ \t]+)?(?:{_COPULA})(?:[ \t]+{_NOW})?|теперь|тепер|сейчас|{_CHANGED})"
# A phrase of words alone, in quotes behind the word for one.
_PHRASE = prepared(
    rf"(?i)(?:passphrase|phrase (?:secr[èe]te|de passe)|frase (?:de paso|de contrase[ñn]a|segreta|secreta)|frase-senha"
    rf"|wachtwoordzin)[^\n:=\"„«“]{{0,48}}?(?:[:=]|[ \t]{_TIE})[ \t]*[\"„«“][ \xa0\u202f]?"
    r"(?P<value>[^\W\d_]+(?:[ ][^\W\d_]+){2,9})[ \xa0\u202f]?[\"“”»]"
)
_TOLD = prepared(
    rf"(?i)(?:(?P<key>{_KEY_WORD})|{_WORD})(?P<tie>(?:[^\n:：=\d\".]|\.(?!\s)|(?<=[ \t])\d{{1,3}}(?=[ \t:：])){{0,48}}[:：=]"
    rf"|(?:[^\n:：=\d\".,]|(?<=[ \t])\d{{1,3}}(?=[ \t])){{0,48}}?{_TIE}[:：]?)?"
    r"を?(?:[^\x00-\x7f「]{0,8}(?=「))?[ \t\u3000]*(?:[\"'„“「]|«[ \t\xa0\u202f]?)?"
    r"(?P<value>[^\s\"'«»„“”「」、。，；]{4,64})"
)
# What it is now, behind a comma: `Passwort geändert, es ist ab sofort …`.
_SAID_NEXT = prepared(
    rf"(?i)(?P<key>(?!))?(?:{_WORD})[^\n:：=\d\".,]{{1,32}},[ \t]+(?:es|das neue|il|c['’]|elle|questa|ora|ahora)[ \t]*"
    rf"(?P<tie>{_TIE})[:：]?[ \t]+[\"'„“]?(?P<value>[^\s\"'«»„“”、。，；]{{6,64}})"
)
# Some words between, where what follows can be nothing else.
_LOOSE = prepared(r"[^\W\d_]+(?:[ \t]+[^\W\d_]+){0,5}[ \t]+[\"'«„“]?([^\s\"'«»„“”]{7,48})")
# The name of a host or of an account between, whose dots end no sentence.
_OF_HOST = prepared(
    rf"(?i)(?:{_WORD})[ \t][^\n:：=\"]{{0,32}}?(?:[^\W_]|-){{1,40}}(?:[._@](?:[^\W_]|-){{1,40}}){{1,4}}[ \t]*"
    rf"(?:[:：=]|-[ \t]|,?[ \t]*{_TIE})"
    r"[ \t]*[\"'«„“]?(?P<value>[^\s\"'«»„“”]{4,64})"
)
# The same of a name that has a number and no dots.
_OF_NUMBERED = prepared(
    rf"(?i)(?:{_WORD})(?:[ \t]+[^\W\d_]{{1,16}}){{0,4}}[ \t]+[a-z][a-z0-9-]{{0,24}}\d(?:[ \t]+{_TIE}[ \t]+|[:：][ \t]*)"
    r"[\"'«„“]?(?P<value>[^\s\"'«»„“”]{4,64})"
)
# What it was changed to: the verb comes behind it, or is in the line before.
_SET_TO = prepared(
    rf"(?i)(?:{_WORD})(?:[ \t]+[\w.-]+){{0,6}}?[ \t]+(?:auf|na|a|en|por|à|su|in|op|naar|till|til|para)[ \t]+"
    r"[\"'«„“]?([^\s\"'«»„“”]{5,48})[\"'»“”]?"
    r"(?:[ \t]+(?:geändert|gesetzt|zurückgesetzt|umgestellt|abgeändert)\b|([.!]?[ \t]*(?:\n|$)|,[ \t]))"
)
_CHANGING = prepared(
    r"(?i)zmieni|ustawi|cambi|chang|modifi|ändr|endr|wijzig|alter|změn|aggiorn|actualiz|mis à jour|geändert|gesetzt"
    r"|remis|réinitialis|troqu|mud(?:ei|ou)|nastav"
)
# What kind of one it is, right before it.
_KINDS = (
    r"provisoire|temporaire|initiale?|tempor[áa]ri[ao]|provis[óo]ri[ao]|inicial|temporal|provisional|provvisori[ao]|temporane[ao]"
    r"|iniziale|tymczasow[eay]|startow[eay]|vorl[äa]ufige[sn]?|tempor[äa]re[sn]?|neue[sn]?|nouveau|nuev[ao]|nuov[ao]|nov[ao]|nowe"
    r"|временн\w{2,3}|начальн\w{2,3}|новый"
)
_OF_KIND = prepared(
    rf"(?i)(?:{_WORD}|password),?[ \t]+(?:{_KINDS})[ \t]*[:：—–-]?[ \t]*(?:[\"'„“]|«[ \t\xa0\u202f]?)?([^\s\"'«»„“”,;]{{6,48}})"
)
# What it is at present, in brackets; and where a password is changed, which may be a host.
_AT_PRESENT = prepared(
    rf"(?i)(?:{_WORD}|password)[^\n():=]{{0,40}}\((?:actuellement|currently|derzeit|aktuell|zurzeit|attualmente|actualmente|obecnie"
    r"|сейчас)[ \t:]+([^\s()]{5,48})\)"
)
_SHEET_CELL = prepared(r"[A-Z]{1,2}\d{1,5}=")
_HOST = prepared(r"[a-z]{2,12}(?:-[a-z]{1,12})+\d{0,3}(?:\.[\w.]+)?")
# A phrase of small words in quotes, in brackets behind the word for a password.
_IN_BRACKETS = prepared(
    rf"(?i)(?:{_WORD}|password)[ \t]*\([\"„«“][ \xa0]?(?-i:([a-zäöüß]+(?: [a-zäöüß]+){{3,9}}))[ \xa0]?[\"“”»]\)"
)
_QUOTED_WORDS = prepared(
    rf"(?i)(?:{_WORD}|password)[^\n\"„«“():=]{{0,40}}?(?:[:：]|[ \t]{_TIE}|(?=[ \t]*[\"„«“]))[ \t]*[\"„«“`][ \xa0]?"
    r"([^\W_]+(?: [^\W_]+){2,9}!?)[ \xa0]?[\"“”»`]"
)
_SMALL_WORDS = prepared(r"[a-zäöüß]+(?: [a-zäöüß]+){3,9}")
_ENDS = ".,;:)\"'»”」"
# What a sentence ends with that has no blank before it.
_SENTENCE_END = prepared("(?:です(?:よ|ね)?|でした|입니다|이에요|예요)[。.!]?$")
# A sentence that goes on behind a sign, or at once, in an alphabet whose words have no blanks between them.
_CUT = prepared("(?<=[!-~]{6})(?:[,;.:!?)]+(?=[^\x00-\x7f])|(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2})).*")
# A code before a comma, with no blank behind it.
_CODE_FIRST = prepared(r"^(\d{4,8})[,，](?=\S*[^\x00-\x7f]).*")
_PINS = prepared("(?i)验证|驗證|認証|確認|인증|подтв|暗証|пин|pin|geheimzahl|code secret|비번|비밀번호|密码|密碼")
_IDEOGRAPHS = prepared("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_COUNTERS = prepared(r"[位个個字自자文年月日天次回分秒时時]|\d[-~～至到]\d")
_MOST_KNOWN = 4_096
_known: dict[bytes, bool] = {}
# Names and a year or an age, as no thing in systems is called.
_NAMES_COUNTED = prepared(r"(?=.{10})(?:[A-Z][a-z]+){1,3}\d{2,4}")
_NETWORK = prepared(r"(?i)\b(?:wlan|wi-?fi)\b")
_OF_NETWORK = prepared(r"(?i)(?:wlan|wi-?fi|ssid)(?:[- ]|[^\n]{1,40}[:,] )\Z")
_NUMBER_OR_SIGN = prepared(r"\d{3}|[!@#$%^&*+~?_-]")


def find(view: View, opened: list[Span]) -> Iterator[Found]:
    """Find the passwords that stand after the word for one; words in this alphabet are at places that are known already."""
    for place in _places(view, opened):
        if (phrase := _PHRASE.match(view.text, place)) and phrases.is_spoken_phrase(phrase["value"]):
            yield Found(*phrase.span("value"), "told-password")
            continue
        quoted = _IN_BRACKETS.match(view.text, place) or _QUOTED_WORDS.match(view.text, place)
        if quoted and _is_phrase(quoted[1]):
            yield Found(*quoted.span(1), "told-password")
            continue
        if (present := _AT_PRESENT.match(view.text, place)) and _is_told("", present[1], is_tied=True):
            yield Found(*present.span(1), "told-password")
            continue
        match = _SAID_NEXT.match(view.text, place) or _TOLD.match(view.text, place)
        if not match:
            yield from _loosely_told(view, place)
            continue
        if _is_glued(view.text, match.start("value")):
            continue
        value = _CUT.sub("", _CODE_FIRST.sub(r"\1", _SENTENCE_END.sub("", match["value"]))).strip("*_").rstrip(_ENDS)
        start = match.start("value") + match["value"].find(value)
        if value.startswith("//") or _SHEET_CELL.match(value):
            # The colon before it is an address's, or it is the next cell of a sheet.
            continue
        if match["tie"] and match["tie"][-1] in ":：=" and (line := phrases.words_from(view.text, start)):
            if not any(char.isascii() and char.isalpha() for char in line):
                # A number among words of another alphabet is counted.
                continue
            yield Found(start, start + len(line), "told-password")
            continue
        if match["key"] and not _is_of_network(view.text, place, match["tie"]):
            if match["tie"] and values.looks_random(value) and len(value) > 15:
                yield Found(start, start + len(value), "token")
        elif _is_told(match[0], value, is_tied=bool(match["tie"])):
            yield Found(start, start + len(value), "told-password")
        else:
            yield from _loosely_told(view, place)


def _is_phrase(value: str) -> bool:
    is_small = bool(_SMALL_WORDS.fullmatch(value))
    return phrases.is_spoken_phrase(value) if is_small else phrases.is_named_phrase(value)


def _is_of_network(text: str, place: int, tie: str | None) -> bool:
    """Tell whether the word for a key is said of a network: before it, or between it and its value."""
    return bool(_OF_NETWORK.search(text, max(0, place - 48), place) or _NETWORK.search(tie or ""))


def _is_glued(text: str, start: int) -> bool:
    """Tell whether a value begins right behind a letter of this alphabet: both are a part of something else, such as a key."""
    return text[start - 1].isalnum() and text[start - 1].isascii()


def _loosely_told(view: View, place: int) -> Iterator[Found]:
    if kind := _OF_KIND.match(view.text, place):
        value = kind[1].rstrip(_ENDS)
        if values.is_told_plainly(value) or lookalikes.is_counted(value) or made.is_signed_once(value):
            yield Found(kind.start(1), kind.start(1) + len(value), "told-password")
            return
    for of_host in (_OF_HOST, _OF_NUMBERED):
        host = of_host.match(view.text, place)
        if host and _is_told(host[0], value := host["value"].rstrip(_ENDS), is_tied=True):
            yield Found(host.start("value"), host.start("value") + len(value), "told-password")
            return
    changed = _SET_TO.match(view.text, place)
    if changed and (changed[2] is None or _CHANGING.search(view.text, max(0, place - 48), place)):
        value = changed[1].rstrip(_ENDS)
        is_odd = values.is_told_plainly(value) or lookalikes.is_counted(value) or lookalikes.is_signed(value)
        if is_odd and not _HOST.fullmatch(value):
            yield Found(changed.start(1), changed.start(1) + len(value), "told-password")
            return
    match = _LOOSE.match(view.text, place)
    value = match[1].rstrip(_ENDS) if match else ""
    if match and (lookalikes.is_unmistakable(value) or made.is_made(value)):
        yield Found(match.start(1), match.start(1) + len(value), "told-password")


def _is_told(whole: str, value: str, *, is_tied: bool) -> bool:
    """Tell whether what comes after the word for a password is one, rather than the rest of the sentence."""
    if value.startswith("//"):
        return False
    if value.isdigit():
        return is_tied and len(value) < 9 and bool(_PINS.match(whole))
    if _IDEOGRAPHS.search(value):
        # There are no blanks between words: a number in one is counted with what is counted beside it.
        is_odd = bool(_NUMBER_OR_SIGN.search(value)) and any(map(str.isdigit, value))
        return is_tied and is_odd and not _COUNTERS.search(value)
    is_odd = lookalikes.is_signed(value) or lookalikes.is_counted(value) or lookalikes.is_unmistakable(value)
    is_odd = is_odd or bool(_NAMES_COUNTED.fullmatch(value)) or lookalikes.is_coined(value) or lookalikes.is_word_phrase(value)
    if is_tied and is_odd and not values.is_placeholder(value):
        return True
    return values.is_told_plainly(value) if is_tied else values.is_told(value)


def _places(view: View, opened: list[Span]) -> Iterator[int]:
    """Give the places of the words for a password."""
    data = view.data
    for start, end in opened:
        word = data[start:end].lower()
        if word in _BORROWED or word == b"passphrase":
            if _LEADING.match(data, end):
                yield start
        elif _is_word(word):
            yield start
    yield from other_places(view)


def _is_word(word: bytes) -> bool:
    if word not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[word] = bool(_STARTS.match(word.decode("latin-1")))
    return _known[word]


def other_places(view: View) -> Iterator[int]:
    """Give the places of words in other alphabets, looked for only where letters of such stand."""
    start = view.data.find(b"??")
    while start >= 0 and (letters := _LETTERS.match(view.data, start)):
        position = letters.end()
        place, start = start, view.data.find(b"??", position)
        if view.text[place:position].isascii():
            continue
        for match in _OTHER_WORD.finditer(view.text, place, position):
            yield match.start()
