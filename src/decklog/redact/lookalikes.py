"""Values that look like a placeholder, a path or a sentence, and are what their name says for all that."""

import re
import unicodedata

from decklog.prepared import prepared
from decklog.redact.placeholders import AT_HOME, BENIGN_WORDS, STOP_WORDS, word_set

_BRACKETED_WORD = prepared(r"[\[(]([a-z]{4,})[\])]")
_BRACED_WITHIN = prepared(r"[A-Za-z]\{[a-z]{1,12}\}[A-Za-z]")
_BRACED_BEFORE = prepared(r"\$\{[A-Za-z]+\}[A-Za-z]+\d\w*")
_CLOSED_FIRST = prepared(r"[)\]}][A-Za-z0-9][\w()\[\]{}.!?-]*")
_JOINS = prepared(r"[-_.]")
_NUMBERED = prepared(r"[-_.]?\d{1,4}$")
_LEET = prepared(r"[A-Za-z]\d{1,2}[A-Za-z]")
_IN_MASK = word_set(
    """
    hidden secure secured object filtered omitted stripped truncated blank blanked snip cut elided censored native unchanged kept
    withheld sanitized scrubbed suppressed concealed obscured anonymized skipped unavailable
    """
)
_ASKING_NAME = prepared(
    r"(?i)(?:[\w.-]*[._-])?(?:forgot(?:ten)?|reset|show|hide|enter|invalid|wrong|missing|incorrect|lost|remember|change|update|no|weak"
    r"|repeat|retype|your|choose|create|expired|toggle|recover)[._-]?(?:your|my|the|old|new)?[._-]?(?:pass|token|secret|(?:api)?[._-]?key)"
)
_TOP_NAMES = word_set("com org net www app dev config name file path key")
_ROOTS = word_set(
    """
    run etc var usr home opt tmp srv mnt root app apps dev proc sys lib bin data config conf certs ssl api users user
    accounts me v1 v2 v3 forgot signin signup register docs help static public assets src test tests kv aws prod staging
    """
)
# A name of a thing in systems has one of these among its words: `billing-api-signing-certs`.
THINGS = word_set(
    """
    app apps api apis prod production staging dev develop service services server client config configs settings cluster cloud
    db database sql postgres mysql redis mongo kafka queue topic bucket backup node pod job worker agent proxy ingress gateway
    cert certs certificate issuer ca tls web www site host domain dns mail smtp docker registry image repo git github gitlab
    aws gcp azure kube kubernetes helm vault secrets tokens keys creds signing encryption webhook metrics monitoring grafana
    prometheus operator controller system demo stage local global common shared team group project account role sync runner
    data build deploy deployment release version main master head branch ref code function param parameter variable arg option
    replace change insert put foo bar baz lorem ipsum hello world not found rate limit request response header body
    """
)
_ASKING = word_set(
    """
    should choose pick type provide verify mismatch incorrect short weak long chars character contain contains include
    between digits letters match matches expired expires sent hint error failed cannot could would may might here there what
    which why how who where they them only also every each than then so but up out into after until optional
    passphrase passcode passwort kennwort wachtwoord contraseña senha login user username email account file name value
    forgotten strength protected stored encrypted see ask like managed provided read found missing yet
    """
)


def is_meant(value: str) -> bool:
    """Tell whether a quoted value without blanks is no placeholder, path or template, whatever it looks like."""
    word = _BRACKETED_WORD.fullmatch(value)
    if word:
        return word[1] not in BENIGN_WORDS and word[1] not in _IN_MASK
    if value[:1] in "/\\":
        return _is_slashed(value)
    return bool(_BRACED_WITHIN.search(value) or _BRACED_BEFORE.fullmatch(value)) or is_mixed_script(value)


def _is_slashed(value: str) -> bool:
    """Tell whether words between slashes are no place in a file system and no page."""
    if value[:2] in ("//", "\\\\"):
        return False
    parts = [part.lower() for part in re.split(r"[/\\]", value.strip("/\\"))]
    if len(parts) > 3 or not all(map(str.isalnum, parts)):
        return False
    return parts[0] not in _ROOTS and BENIGN_WORDS.isdisjoint(parts) and not any(part.startswith("secret") for part in parts)


def is_mixed_script(value: str) -> bool:
    """Tell whether small letters of English stand beside those of an alphabet that has no capitals."""
    latin = [char for char in value if char.isascii()]
    return bool(latin) and all(map(str.islower, latin)) and any(unicodedata.category(char) == "Lo" for char in value)


def is_asking(name: str) -> bool:
    """Tell whether a name is that of what a form says about a secret: `forgot_password`, `showPassword`."""
    return bool(_ASKING_NAME.match(name))


def is_foreign_label(value: str) -> bool:
    """Tell whether a value is words in another alphabet alone, as a translation has them."""
    return not any(char.isascii() and char != " " for char in value) and all(
        char == " " or unicodedata.category(char)[0] in "LM" for char in value
    )


def is_closed_first(value: str) -> bool:
    """Tell whether a value begins with a closing bracket and goes on as no program does."""
    return bool(_CLOSED_FIRST.fullmatch(value)) and len(value) > 4


def is_phrase(value: str) -> bool:
    """Tell whether some words are a phrase to get in by, rather than what a form asks for or a program answers."""
    words = [word.strip(".,;:!?\"'").lower() for word in value[:200].split()]
    if not 2 < len(words) < 13 or value.rstrip()[-1] in ".:?":
        return False
    asking = STOP_WORDS - word_set("the a an is in on of at with by and or my our to for from it this that no not have has")
    if any(word in asking or word in _ASKING for word in words):
        return False
    return all(word.isalnum() or not word.isascii() for word in words if word)


def is_worded(value: str) -> bool:
    """Tell whether words are joined to a phrase with a little word in it, as names of things are not: `cat-on-keyboard`."""
    parts = _JOINS.split(value)
    if len(parts) < 3 or not all(map(str.isalpha, parts)):
        return False
    if "." in value:
        return len({part.istitle() for part in parts}) == 2 and not any(part.lower() in BENIGN_WORDS for part in parts)
    little = {"on", "the", "of", "in", "my", "is", "and", "a", "over", "under", "our", "with", "you", "are", "we", "at"}
    return bool(little.intersection(parts)) and not any(part in BENIGN_WORDS for part in parts if part not in little)


def is_joined_phrase(value: str) -> bool:
    """Tell whether four words or more are joined by one sign, and are no name of a package, a field or a file."""
    parts = _JOINS.split(value)
    if len(parts) < 4 or len({sign for sign in value if not sign.isalpha()}) != 1 or not value.islower():
        return False
    if not all(part.isalpha() and 2 < len(part) < 13 for part in parts) or len(set(parts)) < 3:
        return False
    # Of many words one may be anything's.
    return (
        len(AT_HOME.intersection(parts)) < 3
        and len(BENIGN_WORDS.intersection(parts) - AT_HOME) <= (len(parts) > 4)
        and STOP_WORDS.isdisjoint(parts)
        and _TOP_NAMES.isdisjoint((parts[0], parts[-1]))
    )


def is_word_phrase(value: str) -> bool:
    """Tell whether four words or more are joined by one sign, and none of them names a thing in systems, as those of names do."""
    words = _NUMBERED.sub("", value)
    return is_joined_phrase(words) and (THINGS - AT_HOME).isdisjoint(_JOINS.split(words))


def is_dotted_words(value: str) -> bool:
    """Tell whether three words or more are joined by dots, of which none names a thing in systems as those of expressions do."""
    words = value.split(".")
    if not 2 < len(words) < 6 or not value.islower() or not all(word.isalpha() and 3 < len(word) < 13 for word in words):
        return False
    return (THINGS | BENIGN_WORDS | STOP_WORDS | _ASKING | _TOP_NAMES).isdisjoint(words)


def is_leet(value: str) -> bool:
    """Tell whether a short value has a number in the middle of its letters."""
    return len(value) >= 4 and value.isalnum() and bool(_LEET.search(value))


_SIGNED = prepared(r"(?=[^\W\d_]*[!#$%^&*+~?])[^\W\d_][\w.-]*[!#$%^&*+~?]+(?:[\w.-]+[!?]*|(?<=[!?]{2}))")
_SIGN_WITHIN = prepared(r"[A-Za-z0-9]+[!#$^&~+][A-Za-z0-9!#$^&~+.?]*[A-Za-z0-9][!?]*")
_JOINED_TWO = prepared(r"([A-Za-z0-9]{3,})([-_@=])([A-Za-z0-9]{2,})[!?]?")
_DIGITS_AND_LETTERS = prepared(r"\d{2,}[a-z]|[a-z]\d{2,}")
_COINED = prepared(
    r"[^\W\d_]{3,}(?:[-_.+][^\W\d_]{3,}){1,2}[-_.]?\d{2,4}[!?#$*]?|[A-ZÄÖÜ][a-zäöüßéèñ]{2,}[A-ZÄÖÜ][a-zäöüßéèñ]{2,}\d{2,4}[!?#$*]?"
)
_COINED_WORD = prepared(r"[^\W\d_A-Z]+|[A-Z][^\W\d_A-Z]*")
_COUNTED = prepared(r"[^\W\d_]{3,}[-_.]?\d{1,6}[!?]?")
_HYPHENED = prepared(r"[a-z]{3,}(?:-[a-z]{2,}){1,4}")
_SAID_BEFORE = word_set(
    """
    auto self non pre re un read write case plain hard well user client server app machine system one two multi single
    double time long short built base high low open end back up out in so all too log sign set opt look check rate
    cross wide role per third first second key pass word way safe rest post super over under mid semi anti
    """
)
_SAID_AFTER = word_set(
    """
    only sensitive able free safe based less like in up time case way term protected encoded encrypted hashed generated
    out off on to by side defined specific related level wide ready aware friendly length encrypted bound scoped tier
    word words text key file reset set managed supplied provided readable printable style coded factor lived
    """
)


def is_signed(value: str) -> bool:
    """Tell whether a word has a sign that no word of a sentence has: `bold&Brave`, `Gelato!!`, but not `R&D`."""
    if not _SIGNED.fullmatch(value) or sum(map(str.isalpha, value)) < 5:
        return False
    return not value.isupper()


def is_unmistakable(value: str) -> bool:
    """Tell whether letters have both a number and a sign among them, as nothing else in a sentence has: `wren+398Ye`."""
    if not 7 <= len(value) <= 40 or sum(map(str.isalpha, value)) < 3 or not any(map(str.isdigit, value)):
        return False
    return bool(_SIGN_WITHIN.fullmatch(value)) or _is_jumbled_join(value)


def _is_jumbled_join(value: str) -> bool:
    """Tell whether two words joined by a sign that names have too are none: `sleet-Td77`, `Coruja@120e`, but not `Ubuntu-22`."""
    joined = _JOINED_TWO.fullmatch(value)
    if not joined or value.islower() or value.isupper() or len(value) < 8:
        return False
    first, sign, last = joined.groups()
    if any(part.rstrip("0123456789").lower() in BENIGN_WORDS for part in (first, last)):
        return False
    if sign in "@=":
        return bool(_DIGITS_AND_LETTERS.search(last))
    return first.islower() and not last.islower() and not last.isupper()


def is_coined(value: str) -> bool:
    """Tell whether two words or more are joined with a number, as people make passwords: `Harbor-Maple18`, `TulipGarden33`.

    Names of hosts and things are in small letters or have a word for a thing in systems.
    """
    coined = _COINED.fullmatch(value)
    if not coined or not any(map(str.isupper, value)):
        return False
    words = [word.lower() for word in _COINED_WORD.findall(value)]
    return (THINGS | BENIGN_WORDS - AT_HOME).isdisjoint(words) and not any(word.startswith("test") for word in words)


def is_counted(value: str) -> bool:
    """Tell whether a word ends with a number, as a password that is told does, and is no name for a version or a field."""
    return bool(_COUNTED.fullmatch(value)) and value.rstrip("0123456789!?-_.").lower() not in BENIGN_WORDS


def is_hyphened(value: str) -> bool:
    """Tell whether small words are joined as no description is: `tiger-lily`, but not `case-sensitive`."""
    if not _HYPHENED.fullmatch(value):
        return False
    first, *_, last = value.split("-")
    if first in _SAID_BEFORE or last in _SAID_AFTER or last.endswith(("ed", "able", "ing", "ent", "ly", "ary")):
        return last.endswith("ly") and first not in _SAID_BEFORE and len(last) < 5
    return first not in BENIGN_WORDS and last not in BENIGN_WORDS
