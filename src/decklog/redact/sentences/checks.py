"""What makes a word that is told a secret: what it looks like, and what stands before it and behind it."""

from collections.abc import Sequence

from decklog.prepared import prepared
from decklog.redact import expressions, lookalikes, made, phrases, values
from decklog.redact.placeholders import BENIGN_WORDS, STOP_WORDS, word_set
from decklog.redact.sentences import codes

_SET = prepared(r"(?i)\b(?:set|reset|changed?|rotated?|updated?|made)\b[^.\n]{0,40}$")
_USER_BEFORE = prepared(
    r"(?i)(?:\b(?:user(?:name)?|login|e-?mail|account|as|network|ssid|utente|usuario|usu\xe1rio|benutzer(?:name)?|utilisateur"
    r"|gebruiker|użytkownik|логин|пользователь)\b(?:[ \t]+is\b)?[ \t:=]*(?:[\"'`]?[\w.@+-]+|[\"'][^\"'\n]{1,32})"
    r"|@[\w.-]+)[\"'`]?"
    r"(?:[ \t]*[,;/|]|[ \t]+(?:and|with))[ \t]*(?:the[ \t]+)?$"
)
# What an account has that everybody may know.
_OF_ACCOUNT = prepared(r"(?i)account[ \t]+(?:s?id|number|no|name|type|holder|owner|region|arn|status)\b")
_NOTE = prepared(r"(?:^|\n)[ \t]*(?:[-*•][ \t]+)?(?:[\w.@/-]{1,20}[ \t]+){1,3}\Z")
_EXPOSED = prepared(
    r"(?i)\b(?:hard-?cod(?:e|ed|es|ing)(?:[ \t]+(?:the|our|a))?(?:[ \t]+[\w-]{2,16})?|leaked|committed|exposed|plain-?text"
    r"|cleartext|baked-in|compromised)[ \t]+$"
)
_TO_TYPE = prepared(r"(?i)\b(?:type|enter|use)[ \t]+(?:the|this|our)[ \t]+$")
_SENTENCE_ENDS = ("", "\n", ".", ",", ";", "!", ")", '"')
_LED_IN = prepared(
    r"(?i)(?:(?:with|using|shared|same|the|and|use|has|have|old|new|default|start|initial|first|temp|temporary|,|:)[ \t]+)$"
)
_CAMEL_COUNTED = prepared(r"[a-z]{3,}[A-Z][a-z]{2,}\d{1,4}")
_GROUPS = prepared(r"\d{2,6}(?:-\d{2,6})+")
_OWNED = prepared(r"(?i)\b(?:my|the|your|his|her|our|their|sim|card|door)[ \t]+$")
_PURPOSES = word_set(
    """
    expire match require prevent include contain avoid allow get make keep protect comply satisfy meet follow log
    connect unlock never always something anything whatever another someone everyone nothing ensure improve increase
    test check validate work open
    """
)
_ASKED = word_set("user users answer answers question questions field column string hashed encrypted stored see read")
# What else words about passwords come to: a reason, a rule, or whose password it is.
_OF_OTHERS = word_set(
    """
    failed fails failure error errors invalid denied rejected refused mismatch incorrect wrong by from user users account file
    path field length policy hash hashed digest algorithm type format id version name host server status response http level
    rule rules since until see ticket issue test tests case manager screen page form class function module migration
    """
)
_HEX_KEY = prepared(r"[0-9a-f]{32}|[0-9a-f]{48}|[0-9a-f]{64}")
_HEX_DRAWN = prepared(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{48}|[0-9a-f]{64}")
_HEX_FORMER = prepared(r"[0-9a-f]{32,64}")
# As routers have them on their backs.
_NUMBER_GROUPS = prepared(r"\d{4}(?:-\d{4}){3,4}")
_ODD_SIGN, _STRANGE = prepared(r"[0-9!#$%^&*+~]"), prepared(r"[!@#$%^&*+~?]")
_FILE_END = prepared(r"\.[a-z]{2,5}\b")
_TITLED = prepared(r"[A-Z][a-z]{3,11}-\d{2,4}")
_MEANT = prepared(r"(?i)\b(?:the|this|my|your|our|new|old)[ \t]$")
_OF_NETWORK = prepared(r"(?i)(?:code|key|pass\w{0,6}|schl[üu]ssel|cl[ée]|clave|chiave)[ \t]+(?:du[ \t]+|del[ \t]+|de[ \t]+)?$")
_DIGEST_OF = prepared(r"(?i)\b(?:hash|md5|sha\d*|\w*sum|digest|fingerprint)\b[\w ]{0,12}$")
_TRIED = prepared(
    r"(?i)\b(?:tr(?:y|ied|ies|ying)|us(?:e|ed|es|ing)|enter(?:ed|ing)?|typ(?:ed|e|ing)|guess(?:ed|es)?|sen[dt]|g[ai]ve|with|sets?|got"
    r"|told|shared|leaked|found|cracked|accept(?:ed|s)?|reject(?:ed|s)?)[ \t]+"
    r"(?:(?:him|her|them|me|us|the|my|his|their|our|a|root|admin|old|new|same|default)[ \t]+){0,3}$"
)
_WORKED = prepared(
    r"[\"'`]?[ \t]+(?:work|accept|reject|leak|burn|expos|for |was |is |did|does|fail|still|got|open|unlock|has |expire"
    r"|let |used\b)"
)
_AFTER_USER = prepared(r"(?:[\w.@+-]{2,32}(?:,|[ \t]+[/|])|>|\b(?:login|user|username|account)[ \t]+[\w.@+-]{2,32})[ \t]*$")
_WIRED = prepared(r"(?i)(?:gpio|connect|wire|solder|header|chip|board|output|input|i/o)[\w ]{0,12}$")
_PIN_GIVEN = prepared(
    r"(?i)(?:\b(?:set|use[ds]?|using|enter(?:ed)?|typ(?:e|ed)|try|tried|takes?|accepts?|wants?|my|new|old|sim"
    r"|card|door|bank|with|is"
    r"|conference|meeting|voicemail|host|moderator|participant|guest|alarm|phone|mobile|handy|customer|support)|'s)[ \t]+"
    r"(?:(?:the|a|my|new)[ \t]+)?$"
)
_PIN_WORKS = prepared(r"(?i)[ \t]+(?:open|unlock|work|still|for the (?:door|card|safe|gate))")
_VERSION = prepared(r"\d+[.:+-]")
# A word, the year and two letters that no file ends in.
_YEARLY = prepared(r"[A-Z][a-z]{2,14}(?:19|20)\d\d[.](?!md|py|js|ts|sh|go|rs|gz|db|tf|cs|rb|vb|ps|so|cc)[a-z]{2}")
_ROUND = prepared(r"1024|2048|4096|8192|\d+00")


def is_told(_text: str, _start: int, value: str) -> bool:
    """Tell whether a word of a sentence can only be a password."""
    return values.is_told(value)


def is_random(_text: str, _start: int, value: str) -> bool:
    """Tell whether a word is random, and no name for all that."""
    return values.looks_random(value) and values.is_told(value)


def is_partner(text: str, start: int, value: str) -> bool:
    """Tell whether a word after a user's name is the password, rather than the rest of a path or a port."""
    if "/" in value or ":" in value or value.count("$") > 1 or _OF_ACCOUNT.match(text, start):
        return False
    if ("}=" in value and "(" in value) or ("(" in value and ");" in value):
        # A program without blanks.
        return False
    if _CAMEL_COUNTED.fullmatch(value):
        return True
    is_pair = text[start : start + 4].lower() in ("cred", "wifi", "wi-f", "wlan")
    if is_pair and (lookalikes.is_leet(value) or lookalikes.is_counted(value) or lookalikes.is_signed(value)):
        return not values.is_placeholder(value)
    if text[start : start + 6].lower() == "login:" and lookalikes.is_hyphened(value):
        return True
    if lookalikes.is_coined(value) or lookalikes.is_word_phrase(value):
        return True
    return values.is_told_plainly(value) if is_pair else values.is_told(value)


def is_slashed(text: str, start: int, value: str) -> bool:
    """Tell whether what follows a user's name and a slash is the password: no path has such a name."""
    if text[max(0, start - 1) : start] in ("/", "~", ".", "-", "_", "\\") or _FILE_END.search(value):
        return False
    return is_unmistakable(text, start, value) or (
        bool(_STRANGE.search(value)) and values.has_all_kinds(value) and values.is_told(value)
    )


def is_told_plainly(_text: str, _start: int, value: str) -> bool:
    """Tell whether a word that a sentence calls the password is one."""
    return values.is_told_plainly(value)


def is_beside_user(text: str, start: int, value: str) -> bool:
    """Tell whether a word after "password" is one, as it is where a user's name or address comes before."""
    is_one = values.is_told_plainly(value) or bool(_YEARLY.fullmatch(value))
    return is_one and bool(_USER_BEFORE.search(text, max(0, start - 100), start))


def is_key(text: str, start: int, value: str) -> bool:
    """Tell whether what a key or a token is said to be is random, and no number of a request or a commit."""
    if "public" in text[max(0, start - 8) : start].lower() or values.is_numbered_id(value):
        return False
    if _HEX_KEY.fullmatch(value):
        return not value.isdigit() and not value.isalpha() and not _DIGEST_OF.search(text, max(0, start - 24), start)
    return values.is_jumbled_key(value) and not values.is_harmless(value)


def is_hex_key(text: str, start: int, value: str) -> bool:
    """Tell whether hex right behind the word for a key is one, rather than its digest."""
    return not value.isdigit() and not value.isalpha() and not _DIGEST_OF.search(text, max(0, start - 24), start)


def is_drawn_key(text: str, start: int, value: str) -> bool:
    """Tell whether what a key is said to have been is random: hex of a usual length, or all kinds of characters."""
    return is_hex_key(text, start, value) if _HEX_DRAWN.fullmatch(value) else is_mixed(text, start, value)


def is_hex_token(text: str, start: int, value: str) -> bool:
    """Tell whether hex right behind a word for a token is the one that the sentence is about: `I used the token …`."""
    return bool(_MEANT.search(text, max(0, start - 12), start)) and is_hex_key(text, start, value)


def is_network_key(text: str, start: int, value: str) -> bool:
    """Tell whether what a network is said to be got into by is that: a word and a number do."""
    is_number = (value.isdigit() and len(value) > 9) or bool(_NUMBER_GROUPS.fullmatch(value))
    return is_number or bool(_TITLED.fullmatch(value)) or is_said(text, start, value)


def is_code_of_network(text: str, start: int, value: str) -> bool:
    """Tell whether what a network is given with is what one gets in by: `Code Wi-Fi : …`."""
    return bool(_OF_NETWORK.search(text, max(0, start - 24), start)) and is_said(text, start, value)


def is_key_set(text: str, start: int, value: str) -> bool:
    """Tell whether somebody sets a key or a token to what follows: `set the secret to … in prod`."""
    if not _SET.search(text, max(0, start - 60), start):
        return False
    return is_drawn_key(text, start, value) if _HEX_DRAWN.fullmatch(value) else is_key(text, start, value)


def is_quoted_phrase(_text: str, _start: int, value: str) -> bool:
    """Tell whether words in quotes have nothing to do with each other."""
    return are_unrelated(value.split(), least=3)


def is_typed_phrase(text: str, start: int, value: str) -> bool:
    """Tell whether words that have nothing to do with each other are what somebody is to type."""
    return bool(_TO_TYPE.search(text, max(0, start - 16), start)) and are_unrelated(value.split(), least=4)


def is_spoken_phrase(_text: str, _start: int, value: str) -> bool:
    """Tell whether a sentence in quotes is the phrase itself, rather than what a program says about one."""
    return phrases.is_spoken_phrase(value)


def is_odd_phrase(text: str, start: int, value: str) -> bool:
    """Tell whether words in quotes are a phrase with something odd in it; those in a shell's backticks are a command."""
    if " " not in value or _is_command(text, start, value):
        return False
    if text[start : start + 10].lower() == "passphrase" and value.islower() and are_unrelated(value.split(), least=3):
        return True
    return phrases.is_odd_phrase(value) or is_plain_phrase(value) or phrases.is_named_phrase(value)


def _is_command(text: str, start: int, value: str) -> bool:
    return f"=`{value}" in text[start : start + 200]


def is_odd_line(text: str, start: int, value: str) -> bool:
    """Tell whether the words to the end of a line are a password; those behind "pass" may be a runner's of tests."""
    return text[start + 4 : start + 5].isalpha() and phrases.is_bare_phrase(value)


def is_bare_phrase(_text: str, _start: int, value: str) -> bool:
    """Tell whether the words in quotes right behind the word for a password are one, with a number among them."""
    return (
        phrases.is_bare_phrase(value) or (any(map(str.isdigit, value)) and lookalikes.is_phrase(value)) or is_plain_phrase(value)
    )


def is_plain_phrase(value: str) -> bool:
    """Tell whether small words that have nothing to do with each other are so many that they are a phrase."""
    words = value.split()
    return all(map(str.isalpha, words)) and value.islower() and are_unrelated(words, least=4)


def is_set_in(_text: str, _start: int, value: str) -> bool:
    """Tell whether a word set in commas or brackets behind "password" is one: `his password, …, expired`."""
    is_version = value[0].isdigit() and bool(_VERSION.match(value))
    if _YEARLY.fullmatch(value):
        return True
    return not is_version and (values.is_told_plainly(value) or lookalikes.is_signed(value)) and not values.is_placeholder(value)


def is_tried(text: str, start: int, value: str) -> bool:
    """Tell whether a word behind "password" is one, as it is where somebody tries it or it works."""
    if not (values.is_told(value) or (values.is_told_plainly(value) and lookalikes.is_signed(value))):
        return False
    place = text.find(value, start) + len(value)
    before = max(0, start - 48)
    if _EXPOSED.search(text, before, start):
        return True
    return bool(_TRIED.search(text, before, start) or _AFTER_USER.search(text, before, start) or _WORKED.match(text, place))


def is_pin_given(text: str, start: int, value: str) -> bool:
    """Tell whether a number behind "PIN" is somebody's, rather than that of a wire."""
    if _ROUND.fullmatch(value) or _WIRED.search(text, max(0, start - 24), start):
        return False
    place = text.find(value, start)
    if not text[start + 3 : place].isspace():
        return True
    return bool(_PIN_GIVEN.search(text, max(0, start - 24), start) or _PIN_WORKS.match(text, place + len(value)))


def is_said(_text: str, _start: int, value: str) -> bool:
    """Tell whether what somebody says a password is can be one: a number, a sign or a hyphen no description has."""
    if values.is_placeholder(value) or values.is_path(value) or values.is_url(value):
        return False
    if values.is_told_plainly(value) or lookalikes.is_signed(value) or lookalikes.is_hyphened(value):
        return True
    if lookalikes.is_joined_phrase(value) or lookalikes.is_dotted_words(value):
        return True
    return value[0].isupper() and lookalikes.is_counted(value)


def is_announced(text: str, start: int, value: str) -> bool:
    """Tell whether what some words about a password come to is one: `the password still works: …`, but no failure's reason."""
    said = text[start : text.find(value, start)].lower().rstrip(" :\"'`*").split()
    if not _OF_OTHERS.isdisjoint(said):
        return False
    return values.is_told(value) and (values.has_all_kinds(value) or made.is_made(value)) and not expressions.is_field_name(value)


def is_given_alone(text: str, start: int, value: str) -> bool:
    """Tell whether a word right after "password" ends its sentence, and has a number in it: `the shared password d0cstring.`."""
    place = text.find(value, start) + len(value)
    if text[place : place + 1] not in _SENTENCE_ENDS and text[place : place + 5] not in (" and ", " for "):
        return False
    if not _LED_IN.search(text, max(0, start - 24), start):
        return False
    is_chosen = lookalikes.is_leet(value) or lookalikes.is_counted(value) or made.is_signed_once(value)
    return (is_chosen or lookalikes.is_coined(value)) and not values.is_placeholder(value)


def is_right_behind(text: str, start: int, value: str) -> bool:
    """Tell whether a word right behind "password" is one, by what stands before the two or after them."""
    if is_given_alone(text, start, value) or is_beside_user(text, start, value) or is_tried(text, start, value):
        return True
    if _NUMBER_GROUPS.fullmatch(value):
        return True
    is_drawn = len(value) > 11 and values.has_all_kinds(value) and values.looks_random(value) and values.is_told(value)
    return is_drawn or _is_noted(text, start, value)


def _is_noted(text: str, start: int, value: str) -> bool:
    """Tell whether a line is a note of what a password is: a few words, the word for it, and the value: `- shop pw …`."""
    place = text.find(value, start) + len(value)
    if text[place : place + 1] not in ("", "\n") or text[start + 4 : start + 5] == " " or not values.has_all_kinds(value):
        return False
    return bool(_NOTE.search(text, max(0, start - 40), start)) and values.is_told(value)


def is_unmistakable(_text: str, _start: int, value: str) -> bool:
    """Tell whether a word can be nothing but a password wherever it stands."""
    return lookalikes.is_unmistakable(value) and not values.is_harmless(value) and not expressions.is_code(value, "")


def is_set_to(text: str, start: int, value: str) -> bool:
    """Tell whether what a password was set to is one; a sentence about passwords leads "to" other things too."""
    if values.is_told(value):
        return True
    is_odd = lookalikes.is_leet(value) or lookalikes.is_counted(value) or lookalikes.is_signed(value)
    is_odd = is_odd or lookalikes.is_joined_phrase(value)
    return is_odd and bool(_SET.search(text, max(0, start - 60), start)) and not values.is_placeholder(value)


def is_generated(text: str, start: int, value: str) -> bool:
    """Tell whether a server says what it has made; it says of whom, and then whatever follows is that."""
    is_of_whom = "@" in text[start : text.find(value, start)] and len(value) > 7 and not value.isalpha()
    return values.is_told(value) or (is_of_whom and not values.is_harmless(value))


def is_asked_for(_text: str, _start: int, value: str) -> bool:
    """Tell whether what was asked for has a number or a sign among its letters."""
    return values.is_odd(value)


def is_owned_secret(_text: str, _start: int, value: str) -> bool:
    """Tell whether a thing's secret is one by its numbers or its hyphens."""
    return values.is_told_plainly(value) or (values.is_odd(value) and "-" in value)


def is_typed(text: str, start: int, value: str) -> bool:
    """Tell whether words behind a prompt were typed there: an answer of the program talks about it."""
    is_asked = text[max(0, start - 6) : start].lower() in ("enter ", "\nenter", "enter\t")
    return is_asked and values.is_typed_phrase(value)


def is_phrase(text: str, start: int, value: str) -> bool:
    """Tell whether words that a password was set to are no purpose: `correct horse battery staple`."""
    words = value.split()
    return bool(_SET.search(text, max(0, start - 60), start)) and are_unrelated(words, least=3)


def are_unrelated(words: Sequence[str], *, least: int) -> bool:
    """Tell whether so many words have nothing to do with each other, as those of a phrase have not."""
    if len(words) < least or words[0] in _PURPOSES:
        return False
    if any(word in STOP_WORDS or word in _PURPOSES for word in words):
        return False
    return sum(word in BENIGN_WORDS for word in words) < 2


def is_passphrase(text: str, start: int, value: str) -> bool:
    """Tell whether words are a phrase, or groups of letters as mail providers give them."""
    if _is_command(text, start, value):
        return False
    if values.is_told_phrase(value) or phrases.is_in_fours(value):
        return True
    is_phrase = text[start : start + 10].lower() == "passphrase" or text[max(0, start - 7) : start].lower() == "master "
    return is_phrase and are_unrelated(value.split(), least=4)


def is_answer(_text: str, _start: int, value: str) -> bool:
    """Tell whether some words answer a secret question, rather than saying something about it."""
    words = value.lower().rstrip(".;, ").split()
    if len(words) > 5 or _ASKED.intersection(words) or (len(words) == 1 and words[0] in BENIGN_WORDS):
        return False
    return words[0] not in ("is", "was", "must", "required", "not", "none", "null") and not values.is_placeholder(value)


def is_pin(text: str, start: int, _value: str) -> bool:
    """Tell whether a number is called a PIN, or somebody's pin."""
    return text[start : start + 3] == "PIN" or bool(_OWNED.search(text, max(0, start - 8), start))


def is_any(_text: str, _start: int, _value: str) -> bool:
    """Take whatever stands there."""
    return True


def is_code(_text: str, _start: int, value: str) -> bool:
    """Tell whether a code is digits, groups of them, or a word that can only be one."""
    bare = value.rstrip("#.")
    return bare.replace(" ", "").isdigit() or bool(_GROUPS.fullmatch(bare)) or codes.is_grouped(bare) or values.is_told(value)


def is_number(_text: str, _start: int, value: str) -> bool:
    """Tell whether a code that a sentence comes to at last is digits, or groups that are no words."""
    bare = value.rstrip("#.")
    return (bare.isdigit() and len(bare) > 3) or bool(_GROUPS.fullmatch(bare)) or codes.is_grouped(bare)


def is_in_fours(_text: str, _start: int, value: str) -> bool:
    """Tell whether groups of four letters are what a mail provider gives to a program."""
    return phrases.is_in_fours(value)


def is_former_key(_text: str, _start: int, value: str) -> bool:
    """Tell whether what a key was before is random; one that is called so may look like a commit."""
    return bool(_HEX_FORMER.fullmatch(value)) or values.is_jumbled_key(value)


def is_chosen(_text: str, _start: int, value: str) -> bool:
    """Tell whether what answers a question for a password is one: with a number among its letters, or words that are joined."""
    return values.is_told(value) or lookalikes.is_unmistakable(value) or lookalikes.is_word_phrase(value)


def is_coined(text: str, start: int, value: str) -> bool:
    """Tell whether a word that is told right behind who gets in, or how, was made to get in by."""
    if "=" in value:
        # A name is given a value there, which is looked at by itself.
        return False
    if is_unmistakable(text, start, value) or lookalikes.is_coined(value) or is_chosen_plainly(text, start, value):
        return True
    return len(value) > 11 and value.isalnum() and values.has_all_kinds(value) and is_random(text, start, value)


def is_pair(_text: str, _start: int, value: str) -> bool:
    """Tell whether what follows a user's name and a colon is a password."""
    value = value.rstrip(")")
    return values.is_told_plainly(value) or lookalikes.is_coined(value) or lookalikes.is_word_phrase(value)


def is_set_phrase(_text: str, _start: int, value: str) -> bool:
    """Tell whether the words in quotes that something was set to are what one gets in by: they have a number or a sign."""
    return " " in value and bool(_ODD_SIGN.search(value)) and not values.is_placeholder(value)


def is_chosen_plainly(_text: str, _start: int, value: str) -> bool:
    """Tell whether a word behind a user's name was made to get in by."""
    return made.is_made(value) or made.is_signed_once(value)


def is_made(text: str, start: int, value: str) -> bool:
    """Tell whether a text that a call is given to get in by is random, or words and a number that somebody joined."""
    return is_random(text, start, value) or (any(map(str.isdigit, value)) and is_chosen_plainly(text, start, value))


def is_drawn(text: str, start: int, value: str) -> bool:
    """Tell whether the cell beside "Password" in a table of drawn lines is one."""
    return text[text.find(value, start) - 2] in "│┃║" and is_chosen(text, start, value)


def is_words(_text: str, _start: int, value: str) -> bool:
    """Tell whether a key is plain words that are joined."""
    return lookalikes.is_word_phrase(value)


def is_mixed(text: str, start: int, value: str) -> bool:
    """Tell whether what follows a word for a secret is random in all three kinds of characters; a public key is none."""
    has_all = any(map(str.isupper, value)) and any(map(str.islower, value)) and any(map(str.isdigit, value))
    if not has_all or value.startswith("AAAA") or values.is_path(value):
        return False
    return (
        "public" not in text[max(0, start - 8) : start].lower()
        and values.looks_random(value)
        and not values.is_placeholder(value)
    )


def is_node_cookie(text: str, start: int, value: str) -> bool:
    """Tell whether a word is the cookie by which the nodes of a cluster know each other."""
    if text[start : start + 6].lower() == "cookie" and text[start - 1 : start] != "-":
        return value.isalpha() and value.isupper() and len(value) >= 16
    return values.is_told(value) or (value.isupper() and len(value) >= 12) or (len(value) >= 20 and not values.is_word(value))
