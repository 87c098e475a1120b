"""Values of several words: a phrase to get in by, or a sentence, a label or a message about one."""

from decklog.prepared import prepared
from decklog.redact.placeholders import AT_HOME, BENIGN_WORDS, STOP_WORDS, word_set

# Words of English that talk about a secret, or of what a program prints instead of one.
_TALK = (
    STOP_WORDS - word_set("the a an is in on of at with by and or my our to for from it this that no not have has old before")
) | word_set(
    """
    see ask like than more less chars char character digits digit letters words word tries attempts times time days
    hours minutes seconds bytes bits line lines ticket room section step version page function inputs try min max
    length longer shorter symbols upper lower case long short between contain contains include includes prompt user
    users per each every only other any used read expires expire after within since until stored required
    missing expected error errors option minlength maxlength zeichen caractères caracteres caratteri znaków tecken
    tekens dígitos merkkiä karakter tegn znaků cifre ziffern stellen mindestens moins menos almeno mínimo minimum
    minst minimaal chiffres cifras lettres failed denied found code status http commit commits exit file files
    directory empty hint weak strong hash hashed digest
    """
)
_LITTLE = word_set("old on the a an of to in is and or my our at by with for from it this that no not")
_SIGNED_WORD = prepared(r"[^\W_][\w!@#$%^&*+~?.-]*")
_MIXED = prepared(r"[^\W\d_]\d|\d[^\W\d_]|[!@#$%^&*+~?](?=.)")
_PLAIN_WORD = prepared(r"[^\W_]+(?:['’][^\W_]+)?")
# What a program says to somebody who has typed one.
_GREETING = word_set(
    """
    looks look good great nice oops sorry thanks thank welcome hello hi please sign log login logged press click tap go try retry
    checking loading saving granted access saved updating sending sent wait continue back forgotten remember send sends get gets
    """
)
_UNIT = prepared(r"(?i)\d+(?:st|nd|rd|th|s|ms|m|h|d|x|k|kb|mb|gb|px|bit|am|pm)?[.,:]?")
_FOURS = prepared(r"[a-z]{4}(?: [a-z]{4}){3}")
# As a program's own password is shown where several programs may have one each.
_MIXED_FOURS = prepared(r"[A-Za-z0-9]{4}(?: [A-Za-z0-9]{4}){3,5}")
_UNSPOKEN = prepared(r"[^aeiouy]{4}|[aeiou]{3}|[bcdfgjkmpqtvxz]{3}|^(?:[bcdfghjklmnpqrtvwxz][bcdfgjkmnpqtvxz])|q[^u]|[jqxz]$")
_LABEL_PART = prepared(r"[- ]+")
# The word for a secret, or the beginning or the end of one, in the languages that forms are translated to.
_WORD_FOR_SECRET = prepared(
    r"(?i)passw|passfra|kennw|passe\b|contrase[ñn]|contrasenya|senha|wachtwoord|l[öo]senord|passord|salasana|heslo|has[łl]o"
    r"|parol|lozink|geslo|zaporka|adgangskode|geheim|schl[üu]ssel|codewort|zugangs|zugriffs|clave|chiave|[şs]ifre|jelsz[óo]"
    r"|secret|token|fras[e]?\b|pin-?code|wagwoord|pasahitz|パスワード|暗証番号|密码|密碼|口令|비밀번호|암호|парол|סיסמ|κωδικ"
)
_FEW_WORDS = prepared(r"[^\W\d_]+(?:[ -][^\W\d_]+){0,3}")
_COMMANDS = word_set(
    "make npm npx yarn pnpm node python python3 ruby go cargo docker psql mysql bash sh sudo env java mvn gradle terraform "
    "ansible kubectl helm git ssh curl exec php rails rake bundle poetry uv pytest tox just deno bun dotnet"
)
_SENTENCE_WORDS = word_set(
    """
    siehe im voir véase vedi zie patrz wiki readme docs
    le la les de des du un une est sont doit trop pas das der die ein eine ist sind wurde bitte nicht zu el los es una debe
    il lo non è deve troppo het een te niet moet jest nie musi o os uma é não är inte för er ikke må votre ihr ihre su sua
    """
)


def is_odd_phrase(value: str) -> bool:
    """Tell whether some words have a number or a sign among them, and none of them talks about secrets: `kelp 82 Wq`."""
    words = value.replace(", ", " ").split()
    if not 1 < len(words) < 9 or len(value) > 80 or not all(map(_SIGNED_WORD.fullmatch, words)):
        return False
    if not _TALK.isdisjoint(word.strip(".!?").lower() for word in words):
        return False
    if any(_MIXED.search(word) and not _UNIT.fullmatch(word) for word in words):
        return True
    if len(words) < 3 or words[0].isdigit() or not any(word.rstrip("!?#$*").isdigit() for word in words):
        return False
    return _SENTENCE_WORDS.isdisjoint(map(str.lower, words))


def is_named_phrase(value: str) -> bool:
    """Tell whether the words in quotes that a password is said to be are one: a number, a sign or many words, and no message."""
    words = [word.lower() for word in value.rstrip("!").split()]
    if not 2 < len(words) < 10 or not all(map(_PLAIN_WORD.fullmatch, words)) or _WORD_FOR_SECRET.search(value):
        return False
    if not (_TALK | _GREETING).isdisjoint(words) or not (BENIGN_WORDS - _LITTLE - AT_HOME).isdisjoint(words):
        return False
    if not words[0].isdigit() and any(word.isdigit() and len(word) > 1 for word in words):
        return True
    return len(words) > 3 and all(map(str.isalpha, words)) and value.isascii() and _SENTENCE_WORDS.isdisjoint(words)


def is_spoken_phrase(value: str) -> bool:
    """Tell whether a sentence talks about no secret, so that it may be one: `The kelp under the pier is blue`."""
    words = [word.strip(".!?'").lower() for word in value.split()]
    if len(words) < 3 or not _TALK.isdisjoint(words) or not _SENTENCE_WORDS.isdisjoint(words):
        return False
    return (BENIGN_WORDS - _LITTLE - AT_HOME).isdisjoint(words)


def is_bare_phrase(value: str) -> bool:
    """Tell whether words without quotes are such a phrase: what a line says about a secret has a word for its state in it."""
    words = value.split()
    has_number = any(word.rstrip("!?#$*").isdigit() for word in words)
    if len(words) < 3 or words[0].isdigit() or not has_number or not is_odd_phrase(value):
        return False
    return (BENIGN_WORDS - _LITTLE).isdisjoint(map(str.lower, words))


def is_in_fours(value: str) -> bool:
    """Tell whether a value is four groups of four letters that are no words, as mail providers give them to programs."""
    if _FOURS.fullmatch(value):
        return is_unspoken(value)
    is_mixed = bool(_MIXED_FOURS.fullmatch(value)) and not value.islower() and not value.isupper()
    return is_mixed and any(map(str.isdigit, value)) and sum(map(_is_word, value.split())) < 3


def _is_word(group: str) -> bool:
    return group.isdigit() or (group.isalpha() and _is_cased(group))


def is_unspoken(value: str, *, least: int = 2) -> bool:
    """Tell whether so many of some groups of letters are no words of any language."""
    return sum(bool(_UNSPOKEN.search(group)) for group in value.split()) >= least


def names_secret(name: str) -> bool:
    """Tell whether a name of a few words has the word for a secret in another language than English."""
    word = _WORD_FOR_SECRET.search(name) if _FEW_WORDS.fullmatch(name) else None
    return word is not None and word[0].lower() not in ("passw", "secret", "token")


def is_label(value: str) -> bool:
    """Tell whether a value is what a form calls a secret in some language: `WLAN-Passwort`, `Kennwortsatz`."""
    if len(value) > 48 or not _WORD_FOR_SECRET.search(value):
        return False
    if not value.isascii() and not any(char.isascii() and char.isalnum() for char in value):
        # In an alphabet whose letters have no case.
        return True
    parts = _LABEL_PART.split(value)
    return value[:1].isupper() and all(part.isalpha() and _is_cased(part) for part in parts)


def _is_cased(part: str) -> bool:
    return part.islower() or part.istitle() or part.isupper()


def is_sentence(line: str) -> bool:
    """Tell whether a line is a message in one of the languages that programs are translated to."""
    words = [word.strip(".,;:!?«»\"'()").lower() for word in line[:300].split()]
    if len(words) < 3 or not line[0].isupper() or sum(map(str.isalpha, words)) * 4 < len(words) * 3:
        return False
    return not (_SENTENCE_WORDS | STOP_WORDS).isdisjoint(words)


def rest_of_line(text: str, start: int, end: int) -> str:
    """Give what a line has from a value on."""
    stop = text.find("\n", end, end + 200)
    return text[start : stop if stop >= 0 else min(len(text), end + 200)].rstrip()


def words_from(text: str, start: int) -> str:
    """Give the words from a place to the end of its line, if they are a phrase with something odd in it."""
    line = rest_of_line(text, start, start)
    return line if " " in line and is_bare_phrase(line) else ""


def is_set_phrase(line: str) -> bool:
    """Tell whether the words behind a setting's name are all its value; a command has small letters, options and paths."""
    words = line.split()
    if not 1 < len(words) < 10 or words[1] in _COMMANDS or not all(word.rstrip("!?").isalnum() for word in words):
        return False
    return any(word.isdigit() or not word.islower() for word in words[1:]) and STOP_WORDS.isdisjoint(map(str.lower, words))
