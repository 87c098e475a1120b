"""Which values can be a secret: not a placeholder, not a variable, not a word of prose."""

import re
from binascii import a2b_base64

from decklog.prepared import prepared
from decklog.redact.expressions import (
    DIGIT,
    FIELDS,
    NUMBERED_TERMS,
    SIGNS,
    is_code,
    is_field_name,
    is_identifier,
    is_reference,
    is_scrambled,
    is_variable,
)
from decklog.redact.lookalikes import is_foreign_label
from decklog.redact.placeholders import BENIGN_WORDS, STOP_WORDS, is_chord, word_set

_MASK = frozenset("!*xX.•-_#?0…●•· ")
_PLACEHOLDER = prepared(
    r"""(?ix)
    ^[\^~<>=v]*\d+(?:\.\d+)+(?:[-+][\w.]+)?$
    | ^%env\( | ^(?:%[-+#]?[a-z][:/@. ]?)+$ | ^%(?:\([\w.]*\)s?|[a-z_.]{2,}\d?%)$                    # %s, %(name)s, %NAME%
    | ^%[a-z]/[\w./-]+$ | ^%24(?:%7b)?\w+(?:%7d)?$
    | ^[\#@]\{ | ^\$(?:[({]|\w+\{[^{}]*\}$) | ^\$\d?$ | ^%(?:~[a-z]{0,6})?[\d*]$ | \$\{[^{}]*\} | ^\{\{ | \{\{.*\}\} | \{%\s | <%=
    | [._-]<[a-z][a-z0-9 _-]*>$
    | ^(?:enc\[|enc\(|vault:|arn:|op://|ssm:|ext:|env[:.]|secrets?[.:/](?!\d+$)|file:|ref\+|keyring:|pass:|\$ansible|\$env:|\{env:)
    | ^!(?:ref|sub|vault|secret|env|env_var|getatt|join|importvalue|select|if|findinmap|reference|include|file|base64)\b
    | ^(?:[\w.:-]+/){1,6}secrets?/[\w./-]+$
    | ^@microsoft\.keyvault\( | ^\.[*+] | ^(?:string|text|digest|references|integer)(?::\w+)+$
    | ^(?:sha-?\d+|md5|base\d+|utf-?\d+|argon2\w*|pbkdf2)-[a-z]+$
    | ^\[?redacted | ^\*{2} | \[redacted: | ^<redacted | [\[<(](?:masked|filtered|hidden|removed|omitted|scrubbed)[\])>]$
    | ^(?-i:\*(?:[A-Z]{3,}\*)+)$
    | (?:\b|_)(?:(?:your|my)[-_ .]?|(?:the|some|an?|insert|enter|put|replace|add|paste|fill|change|use)[-_ .])
      (?:[a-z0-9]+[-_ .]){0,3}
      (?:pass(?:word|wd)?|secret|token|key|api[-_ ]?key|apikey|credentials?|here|value|me|this|it)\b
    | ^(?:change|replace|fill|update|rotate|set)[-_ ]?(?:me|this|it|in)\w*$ | (?:^|[-_ ])change[-_ ](?:me|this|it|in)(?:[-_ ]|$)
    | ^(?:please[-_ ])?(?:replace|change|insert|enter|put|paste|generate|choose|pick|your|supply|provide)
      (?:[-_ ](?:[a-z]{1,12}|\d{1,3}))+$
    | ^(?:an?|some|use|set|add)(?:[-_ ](?:[a-z]{1,12}|\d{1,3}))*[-_ ](?:string|value|random|bytes|one|phrase|characters)$
    | ^at[-_ ]least[-_ ] | ^%\{[\w.]+\}$
    | ^(?:placeholder|example|dummy|sample|todo|tbd|fixme)(?:$|[-_ .:])
    | ^(?:fake|dummy|sample|mock(?:ed)?|stub(?:bed)?|bogus)(?:[-_ .][a-z]+)*(?:[-_ .]?\d{1,3})?$
    | (?:[-_ ](?:here|placeholder|goes[-_ ]here|example))$
    | \(\?[:=!P<] | \[\^ | \[a-z | \[0-9 | \\[wdsW][+*]? | \\b(?!\S{0,24}\d)   # a pattern
    | ^@{1,2}[\w.-]+@{1,2}$ | ^@(?:keychain|env|file):
    | ^(?:required|nullable|bail|sometimes|string|(?:min|max|size|between):\d+)[|,] | ^(?:len|length)?[<>]=?\d+$  # rules for one
    | ^\#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$
    | ^[\w-]+/(?-i:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)$                     # an action: session/SET_TOKEN
    | ^(?:\*{1,2}|\$)(?:\.[a-z_]{2,}|\[\*\])+$                       # *.token, $.user.password: where a field stands
    | ^0x[0-9a-f]{5,16}$                                             # where it lies in the memory
    | ^kv/[\w./-]+(?::[\w-]+)?$ | ^@(?:-|(?:~|\.{1,2})?/[\w./-]+)$      # where it is kept or read from
    | ^[a-z][\w.-]*:v?\d+(?:\.\d+){1,3}$                              # a package and its version
    | ^\{cipher\} | ^\$(?:argon2\w*|2[abxy]|[156y]|scrypt|pbkdf2[\w-]*)\$[%*]?$
    | ^(?:x{3,}|\.{2,}|_{2,}|\?+|…+)$ | (?:\.{3}|…)$
    | ^[a-z]{2,}(?:[-_.][a-z]+)*(?:[-_.](?:x{3,}|y{3,}|z{3,}))+$
    | ^[\w.-]{0,12}(?:\*{3,}|\.{3}|…)\w{0,6}$                       # hf_***, sk-...a1b2
    | (?-i:EXAMPLE(?:KEY)?$) | ([x*.])\1{7}
    """
)
_BRACKETED = prepared(
    r"""(?ix)
    ^(?:<[^<>]*> | \[[^\[\]]*\] | \([^()]*\) | \{[^{}]*\})+$          # <token>, [token], {token}
    | \{[a-z_][a-z_.]*(?:\[[^\[\]{}]*\]|\([^(){}]*\))?(?:![rsa])?(?::[^{}]*)?\}(?!\d[a-z]|[a-z]\d)  # a field of a format
    """
)
_NO_FIELD = prepared(r"[\w!@#$%^&*+~?-]+")
_NO_OPERATORS = frozenset("#$^~")
_OPERATED = prepared(r"[!@#$%^&*+~?-]+")
_BRACKETS = prepared(r"[<{\[(]([^<>{}\[\]()]*)[>}\])]")
_PATH = prepared(r"^(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[\w.@ +-]+[/\\])*[\w.@ +-]*$|^(?:[\w.-]+/)+[\w-]+\.\w{1,6}$")
_URL = prepared(r"^[a-z][a-z0-9+.-]*://", re.I)
_PROSE_WORD = prepared(r"^[\"'(¿¡]?[^\W\d_](?:[^\W\d_A-Z]|['’-])*[.,;:!?)\"']*$|^[A-Z]{2,}[.,;:!?]*$|^[&/—–-]+$|^\d{1,6}[+.,]?$")
_KINDS = str.maketrans(
    dict.fromkeys("0123456789", "d")
    | dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "l")
    | dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "u")
)
_UUID = prepared(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DIGEST = prepared(r"(?i)sha(?:1|224|256|384|512)[:-][A-Za-z0-9+/]{27,}=*")
# Customers, payments and events of a shop; messages, calls and runs of a model.
_SERVICE_ID = prepared(
    r"(?:cus|sub|in|ii|il|pi|ch|evt|req|price|prod|plan|acct|pm|seti|cs|txn|po|si|card|src|dp|msg|toolu|srvtoolu|call|resp|run|thread"
    r"|asst|step|file|batch|chatcmpl|cmpl|ftjob|job|task|wf|usr|user|org|team|proj|conv|trace|span|evalrun)[_-](?:test_|live_)?[A-Za-z0-9]{8,}"
)
_SHORTEST_KEY = 10
_POINTER = prepared(r"0x[0-9a-f]{5,16}")
_ASSEMBLY = prepared(r"[0-9a-f]{16}")
_CAPPED = prepared(r"[A-Z][a-z]+\d{1,4}")
# Versions, dates, times, sizes, addresses, tickets and the like.
_NUMBERED_THING = prepared(
    r"(?i)v?\d+(?:[.:x/-]\d+)+\w{0,6}$|\d+(?:st|nd|rd|th|s|ms|m|h|d|x|k|kb|mb|gb|px|pt|em|rem|bit|-bit|am|pm|%)$|0x[0-9a-f]+$|(?-i:[a-z]{2,10}|[A-Z]{2,10})-\d+$"
    r"|(?-i:[A-Z][a-z]{1,9}-(?:\d{1,3}|19\d\d|20[0-4]\d|2[12]\d\d|\d{5,}))$"
    r"|argon2\w*$|x86_64$|(?:amd|arm)64$|[\w.-]+\.(?:(?-i:[a-z]{2,5})|md\d?|mp\d|h5|7z|bz2)$|[a-z]+(?:-[a-z]+)*-\d$|\d+[+-]?$|(?-i:[a-z][a-z0-9_.+-]*@[a-z0-9][a-z0-9.-]*$)"
)
_TALK = (STOP_WORDS - word_set("the a an in on at with by and or my our to of for from is it")) | word_set(
    """
    see ask like than more less chars digits digit letters words word tries attempts times days hours minutes seconds
    line lines ticket room section step version page function inputs try min max length longer shorter symbols upper
    lower case long short between contain contains include includes prompt user users per each every only other any
    used read expires expire after before within
    """
)
_ANSWERS = word_set(
    "denied failed error bad incorrect correct empty missing found given expected stored cached loaded timed aborted"
)
# No address: its first part is a word with a year, and its second one has no dot.
_PASSWORD_WITH_AT = prepared(r"[A-Za-z]+\d{2,}\w*@[A-Za-z0-9]+|[A-Z][a-z]+@\d{2,}[!?]?")
_PUBLIC_BLOCK = prepared(r"-----BEGIN (?:[A-Z0-9]+ )*(?:PUBLIC KEY|CERTIFICATE|CERTIFICATE REQUEST|X509 CRL|DH PARAMETERS)")
# What opens a template and goes on as no name does, with nothing that closes it.
_UNCLOSED = prepared(r"[$#@%]?[({<]{1,2}%?=?([A-Za-z0-9]{6,}|(?:\d[A-Za-z0-9]{5,})[)}>]{1,2}[A-Za-z0-9]+)")
_PUBLIC_MARKS = ("phc_", "pk_live_", "pk_test_", "pk.eyJ", "AAAAB3NzaC1", "AAAAC3NzaC1", "ssh-rsa ", "ssh-ed25519 ")
# What a mail server asks by.
_PROMPTS = ("UGFzc3dvcmQ6", "VXNlcm5hbWU6")
# What documentation gives to everybody: keys of emulators and of a service, the example of the RFC on how to log in by a
# header, a token.
_DOCUMENTED = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==",
    "QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
    # Written in two, since whoever looks for keys of this service in a repository would find it.
    "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
    "sk_test_BQokikJOvBiI2HlWgH4olfQ2",
    # What a service takes for a right answer of any page, and what a chain on one's own machine begins with.
    "6LeIxAcTAAAAAGG-vFI1TnRWxMZNFuojJ4WifJWe",
    "test test test test test test test test test test test junk",
    "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about",
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "JBSWY3DPEHPK3PXP",
    "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ",
    # What the debugger at jwt.io begins with.
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ"
    ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
)
# What a cluster alone can open: its session key comes first, and that key's length before it.
_SEALED = prepared(r"Ag[A-P][A-Za-z0-9+/]{140}|ENC\[AES256_GCM,")
_HOLDERS = word_set(
    """
    config cfg conf settings this self args opts options env process user data form props state req request body params
    input inputs values ctx context secrets vars var local locals module each item row event e i t auth creds credentials
    app session cls obj spec os string crypto bcrypt users account response res payload model model_config field fields
    """
)
# What PHP calls the ways to hash a password.
_KINDS_OF_HASH = prepared(r"PASSWORD_(?:DEFAULT|(?:BCRYPT|ARGON2ID?)(?:_[A-Z_]+)?|ARGON2_[A-Z_]+)")
_COMMIT = prepared(r"[0-9a-f]{40}")
# A letter by itself, which neither words nor abbreviations leave. Looking for whole words instead tries every way to cut a value.
_LONE = prepared(r"(?<![a-z])[a-z](?![a-z])|(?<![A-Z])[A-Z](?![A-Za-z])")
_LATIN = prepared(r"[A-Za-z]{6,}")
_KEY_BODY = prepared(r"[A-Za-z0-9+/=]{16,}|(?=[A-Za-z+/=]*\d)[A-Za-z0-9+/=]{8,}")
_PUT_HERE = prepared(r"<[A-Za-z][^<>]{0,60}[ _-][^<>]{0,60}>")
_SEGMENTS = prepared(r"[^A-Za-z0-9]+")


def is_placeholder(value: str) -> bool:
    """Tell whether a value only stands where a secret will be: `<token>`, `${VAR}`, `***`, `changeme`."""
    bare = value.strip().strip("\"'`").rstrip(",;")
    if not bare or bare == "~" or bare.lower() in BENIGN_WORDS or is_chord(bare):
        return True
    if _MASK.issuperset(bare[:256]) and bare not in ("x", "X", "0"):
        return True
    if not bare.isascii() and _is_foreign_word(bare):
        return True
    if len(set(bare[:64])) <= 2 and len(bare) >= 6 and not bare.isdigit():
        return True
    if (unclosed := _UNCLOSED.fullmatch(bare)) and is_told(unclosed[1]):
        return False
    if is_variable(bare) or _PLACEHOLDER.search(bare[:96]) or NUMBERED_TERMS.fullmatch(bare):
        return True
    return bool(_BRACKETED.search(bare[:96])) and not _is_odd_in_brackets(bare[:96])


def _is_foreign_word(value: str) -> bool:
    """Tell whether a value is a word of another language, rather than random letters between some of another alphabet."""
    word = value.rstrip(":?!*")
    is_word = len(word) < 4 or word.isalpha() or is_foreign_label(word)
    return is_word and all(map(is_identifier, _LATIN.findall(word)))


def _is_odd_in_brackets(value: str) -> bool:
    """Tell whether a value has brackets and stands for nothing for all that: `<angle9K>`, `{curly}Jx8`."""
    inside, outside = _BRACKETS.findall(value), _BRACKETS.sub("", value)
    if outside:
        is_odd = outside.isalnum() or (len(outside) > 5 and outside.isascii() and has_all_kinds(outside))
        return is_odd and any(map(str.isdigit, outside)) and all(part.isalnum() for part in inside)
    inner = inside[0] if len(inside) == 1 else ""
    if _is_no_field(inner):
        return True
    is_mixed = inner.isalnum() and inner[0].isalpha() and any(map(str.isdigit, inner))
    return is_mixed and (len(inner) < 3 or not is_identifier(inner))


def _is_no_field(inner: str) -> bool:
    """Tell whether what stands in brackets is neither a name nor an expression of names: `1hVu!11bUg`."""
    if len(inner) < 6 or not _NO_FIELD.fullmatch(inner) or not DIGIT.search(inner) or not any(map(str.isalpha, inner)):
        return False
    parts = [part for part in _OPERATED.split(inner) if part]
    if not _NO_OPERATORS.isdisjoint(inner):
        return True
    return bool(SIGNS.intersection(inner)) and not all(part.isdigit() or is_identifier(part) for part in parts)


def has_all_kinds(value: str) -> bool:
    """Tell whether a value has a capital, a small letter and a digit."""
    return any(map(str.isupper, value)) and any(map(str.islower, value)) and any(map(str.isdigit, value))


def is_label(name: str, value: str) -> bool:
    """Tell whether a value is what a translation calls the thing: `"secret": "Geheimnis"`."""
    return len(value) < 24 and value.istitle() and value.isalpha() and name.strip("-") in ("secret", "token", "Secret", "Token")


def is_documented(value: str) -> bool:
    """Tell whether a key is one that the documentation of its kind gives to everybody."""
    value = value.rstrip("\"';,")
    # Of a long one a rule may have found the beginning.
    return value in _DOCUMENTED or (len(value) >= 48 and any(known.startswith(value) for known in _DOCUMENTED))


def is_public(value: str) -> bool:
    """Tell whether a key says of itself that everybody may see it."""
    if value in _PROMPTS or is_documented(value):
        return True
    return value.startswith(_PUBLIC_MARKS) or bool(_PUBLIC_BLOCK.match(value) or _SEALED.match(value))


def is_mixed_key(value: str) -> bool:
    """Tell whether a value can be nothing but a key: long, random, and of all three kinds of characters."""
    mixes = any(map(str.isupper, value)) and any(map(str.islower, value)) and any(map(str.isdigit, value))
    return mixes and len(value) >= 24 and " " not in value and looks_random(value) and is_jumbled_key(value)


def is_dotted(value: str) -> bool:
    """Tell whether words are joined by dots, and the first is not one that programs keep their settings in."""
    first, *others = value.split(".")
    return (
        len(others) > 1 and all(map(str.isalpha, [first, *others])) and first.lower() not in _HOLDERS and not is_reference(value)
    )


def is_assembly_token(name: str, value: str) -> bool:
    """Tell whether a value is the digest by which .NET knows a publisher: `<Key Token="b77a5c561934e089" />`."""
    return name == "Token" and bool(_ASSEMBLY.fullmatch(value))


def is_harmless(value: str) -> bool:
    """Tell whether a value is no secret whatever its name: a placeholder, a path, an address, a sentence."""
    return is_placeholder(value) or is_path(value) or is_url(value) or is_prose(value) or bool(_KINDS_OF_HASH.fullmatch(value))


def is_passphrase(value: str) -> bool:
    """Tell whether a value is some words with a number among them, which no sentence is made of."""
    tokens = value[:300].split()
    if len(tokens) < 3 or not any(map(str.isdigit, tokens)) or STOP_WORDS.intersection(map(str.lower, tokens)):
        return False
    return all(map(str.isalnum, tokens))


def is_told_phrase(value: str) -> bool:
    """Tell whether a value is some small words with a number among them, none of which talks about passwords."""
    tokens = value[:300].split()
    if len(tokens) < 3 or value != value.lower() or not DIGIT.search(value) or _TALK.intersection(tokens):
        return False
    return all(token.rstrip("!?").isalnum() and len(token) <= 14 for token in tokens)


def is_told(value: str) -> bool:
    """Tell whether a word of a sentence can only be a password: letters with numbers among them as no name has them."""
    if len(value) < 5 or not any(map(str.isalpha, value)) or _NUMBERED_THING.match(value):
        return False
    if not (DIGIT.search(value) or is_scrambled(value)) or is_harmless(value) or is_example(value):
        return False
    if is_capped(value) or ("." in value and all(part[:1].isupper() for part in value.split("."))):
        return True
    return not (is_identifier(value) or is_code(value, ""))


def has_told_word(value: str) -> bool:
    """Tell whether one of a few words is random, as no word of a label or a message is."""
    tokens = value[:200].split()
    return len(tokens) < 7 and any(len(token) > 6 and has_all_kinds(token) and is_told(token) for token in tokens)


def is_told_plainly(value: str) -> bool:
    """Tell whether a word that a sentence calls the password is one: names of programs are in small letters."""
    if is_told(value):
        return True
    if len(value) < 5 or not DIGIT.search(value) or NUMBERED_TERMS.fullmatch(value) or is_harmless(value):
        return False
    is_name = value.islower() and value.isalnum()
    if is_name or is_field_name(value) or value.rstrip("0123456789").lower() in BENIGN_WORDS or is_reference(value):
        return False
    if "@" in value:
        return bool(_PASSWORD_WITH_AT.fullmatch(value))
    return any(map(str.isalpha, value)) and not _NUMBERED_THING.match(value) and value[-1] not in ")]"


def is_odd(value: str) -> bool:
    """Tell whether a word has a number or a sign among its letters, and is no version, name of a file, variable or call."""
    if not any(map(str.isalpha, value)) or not (DIGIT.search(value) or SIGNS.intersection(value[:-1])):
        return False
    if is_harmless(value) or is_example(value) or is_public(value) or _NUMBERED_THING.match(value):
        return False
    return not (is_reference(value) or NUMBERED_TERMS.fullmatch(value) or (is_code(value, "") and not is_capped(value)))


def is_typed_phrase(value: str) -> bool:
    """Tell whether some words in small letters are no message of a program about passwords."""
    tokens = value[:300].split()
    return len(tokens) >= 4 and not _TALK.intersection(tokens) and not _ANSWERS.intersection(tokens)


def is_service_id(value: str) -> bool:
    """Tell whether a value is what a service numbers its things by, with what they are before it: `cus_…`, `toolu_…`."""
    return bool(_SERVICE_ID.match(value))


def is_entry_key(value: str) -> bool:
    """Tell whether a value is so short and plain that it is the key of an element in a page or of an entry in a table."""
    return len(value) < _SHORTEST_KEY and value.islower()


def is_digest(value: str) -> bool:
    """Tell whether a value says of itself that it is a digest: `sha512-…`."""
    return bool(_DIGEST.fullmatch(value))


def is_numbered_id(value: str) -> bool:
    """Tell whether a value is a UUID or the name of a commit."""
    return bool(_UUID.fullmatch(value) or _COMMIT.fullmatch(value))


def is_capped(value: str) -> bool:
    """Tell whether what reads as an attribute or a cast ends as hardly one does: `Green.Frog5`, `(paren)Zed7`."""
    last = re.split(r"[.)\]>]", value)[-1]
    return bool(_CAPPED.fullmatch(last)) and last.rstrip("0123456789").lower() not in FIELDS and not is_field_name(last)


def is_path(value: str) -> bool:
    """Tell whether a value is a place in a file system."""
    if len(value) > 400 or not _PATH.match(value) or _is_odd_name(value[1:]):
        return False
    return not _has_random_segment(value.replace("/", "").replace("+", ""))


def _is_odd_name(name: str) -> bool:
    """Tell whether letters have a number in their middle, as no name of a file at the root has: `slash9Way`."""
    bare = name.replace("+", "").replace("-", "").replace("@", "")
    if not bare.isalnum() or not bare[0].isalpha() or not any(map(str.isdigit, bare)) or is_identifier(bare):
        return False
    return bare == name or has_all_kinds(bare)


def is_url(value: str) -> bool:
    """Tell whether a value is an address; a password inside it is found by another rule."""
    return bool(_URL.match(value))


def is_prose(value: str) -> bool:
    """Tell whether a value is a few words of a sentence or a label, not a passphrase."""
    if " " not in value.strip():
        return False
    tokens = value[:300].split()
    plain = sum(1 for token in tokens if _PROSE_WORD.match(token))
    if plain < len(tokens) * 0.75:
        return False
    lowered = {token.lower().strip(".,;:!?()\"'") for token in tokens}
    return bool(lowered & STOP_WORDS) or value[0].isupper() or value.rstrip()[-1] in ".!?:"


def is_word(value: str) -> bool:
    """Tell whether a value is made of letters alone, joined by - _ or . at most."""
    return value.replace("-", "").replace("_", "").replace(".", "").isalpha()


def is_type_name(value: str) -> bool:
    """Tell whether a value is written like a class: `PKCS7PrivateKey`."""
    return value[0].isupper() and value.isalnum() and value[-1].islower() and not _has_random_segment(value)


def is_place(value: str) -> bool:
    """Tell whether a value is a place in a store, such as `uploads/9fceb02d.png`; a key of Amazon's has 40 signs."""
    *folders, name = value.split("/")
    is_key = len(value) == 40 and looks_random(name)
    return bool(folders) and not is_key and not folders[0].isdigit() and all(map(_is_folder, folders))


def _is_folder(name: str) -> bool:
    return name.isdigit() or (len(name) > 2 and name.islower() and is_word(name))


def is_odd_word(value: str) -> bool:
    """Tell whether a value has letters alone, in a case that no name has: `LDToOdrNgn`, `KwEFpPr-ghH`."""
    if len(value) < 10 or not value.isascii() or not is_word(value) or "." in value:
        return False
    is_mixed = "-" in value and "_" in value and not value.islower() and not value.isupper()
    return is_mixed or any(len(part) > 2 and not is_identifier(part) for part in _SEGMENTS.split(value))


def is_numbered_word(value: str, *, is_spaced: bool) -> bool:
    """Tell whether a value is a variable called after what it holds, such as `password1` in an assignment."""
    return is_spaced and value.rstrip("0123456789").lower() in BENIGN_WORDS


def looks_random(value: str) -> bool:
    """Tell whether a value can't be a name or words: digits among letters, or case that words don't have."""
    if _has_random_segment(value):
        return True
    letters = sum(map(str.isalpha, value[:200]))
    digits = sum(map(str.isdigit, value[:200]))
    if len(value) >= 16 and digits >= 4 and letters >= 4:
        return True
    return len(value) >= 24 and digits > 0 and " " not in value and is_jumbled_key(value)


def is_session_id(value: str) -> bool:
    """Tell whether a value can keep somebody logged in, rather than number a session."""
    return len(value) >= 16 and " " not in value and looks_random(value) and not _UUID.fullmatch(value)


def is_random_or_odd(value: str) -> bool:
    """Tell whether a value can't be a name or words, by its digits or by its case."""
    return looks_random(value) or is_odd_word(value)


def _has_random_segment(value: str) -> bool:
    return any(len(segment) >= 8 and _is_jumbled(segment[:64]) for segment in _SEGMENTS.split(value[:400]))


def _is_jumbled(segment: str) -> bool:
    """Tell whether letters and digits change kind faster than they do in names; `Word` counts as one run."""
    kinds = segment.translate(_KINDS)
    runs = 1 + sum(map(kinds.count, ("ud", "du", "ld", "dl", "lu")))
    if runs < 4 or len(segment) > 5.5 * runs or (segment.isalpha() and is_identifier(segment)):
        return False
    return len(segment) <= 3.4 * runs or (len(segment) >= 16 and bool(_LONE.search(segment)))


def is_jumble(value: str) -> bool:
    """Tell whether a value is plainly random, so that nothing else need be asked about it."""
    return len(value) >= 8 and value.isalnum() and value.isascii() and _is_jumbled(value[:64]) and not _POINTER.fullmatch(value)


_STAND_IN = prepared(
    r"(?i)your[-_]|[-_]here\b|placeholder|xxxxx|redacted|replace[-_]?me|example[-_]|[-_]goes[-_]|\*\*\*|0{12}|123456789012|(?-i:EXAMPLE(?:KEY)?$)"
)


def is_example(value: str) -> bool:
    """Tell whether a value is one of those that documentation shows."""
    return value.endswith(("EXAMPLE", "EXAMPLEKEY"))


def is_stand_in(token: str) -> bool:
    """Tell whether a token with a provider's mark only shows what one looks like."""
    return bool(_STAND_IN.search(token[:256]))


_DOCUMENTED_USERS = word_set("user username usr root admin postgres guest me name")
_DOCUMENTED_HOSTS = word_set("localhost host hostname 127.0.0.1 example.com example.org example.net")
_HOST = prepared(r"@([\w.-]*)")


def is_documented_pair(user: str, password: str, after: str) -> bool:
    """Tell whether `user:pass@host` only shows how an address is written, or opens a service on this machine."""
    is_word_for_it = password.lower() in BENIGN_WORDS
    if not is_word_for_it and user != password:
        return False
    if is_word_for_it and user.lower() in _DOCUMENTED_USERS:
        return True
    match = _HOST.match(after)
    host = match.group(1) if match else ""
    return host in _DOCUMENTED_HOSTS or host.endswith((".example.com", ".example.org"))


def is_jumbled_key(token: str) -> bool:
    """Tell whether a key is random, which words joined by hyphens are not, whatever else is joined to them."""
    parts = _SEGMENTS.split(token[:64])
    words = sum(len(part) for part in parts if len(part) > 2 and part.isalpha() and (part.islower() or part.istitle()))
    return 2 * words < len("".join(parts)) and _is_jumbled("".join(parts))


def is_basic_pair(encoded: str) -> bool:
    """Tell whether base64 text decodes to `user:password`."""
    try:
        decoded = a2b_base64(encoded + "=" * (-len(encoded) % 4))
    except ValueError:
        return False
    return b":" in decoded and decoded.isascii() and decoded.decode().isprintable()


def has_key_body(block: str) -> bool:
    """Tell whether a key block has anything between its first and its last line."""
    body = block.split("-----", 2)[-1].rsplit("-----END", 1)[0]
    return bool(_KEY_BODY.search(body)) and not _PUT_HERE.fullmatch(body.strip())
