"""Secrets on the line below what announces them: a label, a command that prints one, the head of a table's column."""

import re
from collections.abc import Iterator

from decklog.prepared import prepared
from decklog.redact import expressions, lookalikes, phrases, values
from decklog.redact.names import kind_of
from decklog.redact.placeholders import word_set
from decklog.redact.sentences import codes, tables
from decklog.redact.view import Found, View

# What a line has in it that announces a secret below, besides the words for one.
ANNOUNCING = (
    r"pass(?: show)? [\w./-]+/|op read|rbw get|gopass|lpass|bw get|pwgen|mkpasswd|xkcdpass|diceware|genkey|genpsk|keygen"
    r"|openssl rand|token_hex|token_urlsafe"
    r"|urandom|base64 (?:-d|--decode)|master\.key|pgpass|oathtool|phx\.gen|key:generate|echo [\"']?[$%]|printenv"
    r"|(?:terraform|tofu|stack) output|configure get|keys list|dumpprivkey|exportprivkey"
    r"|config:get|config get|-field|private[ _-]?key|master[ _-]key|pre-?shared[ _-]key"
    r"|contrase\xf1a|mot de passe|senha|wachtwoord|kennwort|passwort"
    r"|[a-z]{2,12}_(?:pass(?:word|wd)?|pwd|pin)|(?:api|access|auth|reset|refresh|session|invite)_token|(?:api|client)_secret|secret_key|initial-password"
    r"|t[\xfcu]rcode|door[ _]?code|zugangscode|access[ _]code"
    r"|unseal|recovery code|codes? de (?:secours|r[\xe9e]cup)|wiederherstellungscode|c[\xf3o]digos de (?:recuper|respaldo)"
)
# The label of a field that has to be filled in.
_FIELD = prepared(r"(?i)(?:[a-z]+ ){0,2}(?:pass(?:word|phrase|code)|passwort|kennwort|pin|mot de passe|contraseña|senha)[ \t]*\*")
_LABELS = (":", "：", " is", " are", "=")
# Who gives a command there, which says nothing of what it prints: `root@db1:~# `.
_BY_USER = prepared(r"\w+@[\w.-]+(?:[: ][\w~./-]*)?\]?[$#%>]{1,3}[ \t]")
# A line of its own that asks for the next command, as devices do: `edge1>`.
_ASKS_ON = prepared(r"[A-Za-z][\w.-]*(?:\([\w-]+\))?>")
_COMMAND = prepared(
    r"(?i)^(?:sudo |docker exec \S+ |kubectl exec [^|]*-- )?(?:cat|echo|printenv|type|get-content|vault|op|pass|gopass"
    r"|lpass|bw|rbw|aws|az|gcloud"
    r"|kubectl|oc|terraform|tofu|pulumi|heroku|gh|argocd|security|secret-tool|keyring|doppler|infisical|sops"
    r"|ansible-vault|gpg|age|credstash"
    r"|chamber|consul|etcdctl|wp|npm|php|rails|bin/rails|mix|wg|kubeadm|fly|flyctl|oathtool|openssl|pwgen|mkpasswd|jq"
    r"|yq|head|tr|helm|step|flask"
    r"|python3?|node|ruby|dotnet|keepassxc-cli|passage|berglas|teller|chezmoi|redis-cli|psql|mysql|sqlite3|curl|cut|awk"
    r"|grep|sed|base64|docker"
    r"|systemd-creds|k3s|minikube|jwt|snyk|databricks|cf|ibmcloud|doctl|railway|bitcoin-cli|litecoin-cli|dogecoin-cli)\b"
)
_NOT_PRINTING = prepared(
    r"(?i)\b(?:grep -c|wc|ls|(?<!keys )list|which|--version|sha\d*sum|md5sum|git (?:log|rev)"
    r"|create secret|secret create|-o name|\.pub\b)"
    # It prints the id of what it has begun.
    r"|docker (?:run|create)\b[^|]*[ \t](?:-d|--detach)\b"
)
# What a list, a debugger or a shell of a language puts before what it shows.
SHOWING = r"(?:=>|>|Out\[\d+\]:|\$\d+ =(?: 0x[0-9a-f]+)?|(?:val )?\$?res\d+: [\w.\[\]]+ =|\[1\]|ans =|\d+[.)]|[-*•])[ \t]+"
_NEXT = prepared(rf"[ \t\n]{{0,12}}?(?:{SHOWING})?[\"'`]?([^\s\"']{{4,200}})[\"']?[ \t]*(?=\n|$)")
_SHOWN = prepared(SHOWING)
_INSERT = prepared(r"(?i)\(([\w\s,`\"\[\].]{1,300})\)\s*values\s*\(([^\n]{1,600})")
_ARGUMENT = prepared(r"[ \t]*N?'([^'\n]*)'|[^,'()]+(?:\([^()]*\))?")
_ORDINARY = word_set(
    "step phase level item part option user test node host server line case version file page chapter group db v max min top"
)
# What a container's or a service's log puts before each line.
PREFIX = (
    r"(?:(?:>[ \t]?){1,4}|[\w.\[\]/-]+[ \t]*\|(?:[ \t]+|$)|\[[^\]\n]{1,60}\][ \t]+"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,Z+]+[ \t]+(?:\[?[A-Z]+\]?[ \t]+)?)"
)
_PREFIX = prepared(PREFIX)
# The value of what the line before was about: `New value: …`.
_GIVEN_BELOW = prepared(
    r"\s{0,12}(?i:(?:(?:the|new|your|its)[ \t]+)?value)(?:[ \t]*[:=]|[ \t]+is)[ \t]*[\"'`]?([^\s\"'`,<>]{4,64})"
)
_KEEPERS = prepared(
    r"(?i)(?:(?<![\w./-])pass (?:show|-c)|^(?:[^\n]{0,60}[$#%>] )?(?-i:pass)(?= [\w.@/-]+$)|\bgopass(?: show)?|op read"
    r"|lpass show|bw get|rbw get|passage(?: show)?|find-(?:generic|internet)-password -w|keepassxc-cli show"
    r"|secrets versions access|secrets? get) [^|]+$"
)
# What draws a password, of words as well.
_DRAWS_WORDS = prepared(r"(?:^|[$#%>&|] ?)(?:sudo )?(?:pwgen|xkcdpass|diceware|apg|gopass pwgen|bw generate|op generate)\b[^|]*$")
# What prints one secret and nothing else, so that letters alone are one too.
_SHOWS_ONE = prepared(
    r"(?i)\bget secrets?\b[^|\n]*(?:pass|secret|token|key|pwd|cred)[\w\\.-]*[}\"'\] \t]*\|[^\n]*\bbase64 (?:-d|--decode)\b"
    r"|\bcat [^\n|;&]*\.erlang\.cookie[ \t]*$"
)
_LINE_NUMBER = prepared(r"^\d{1,6}[:-]")
_LETTERS = prepared(r"(?=[A-Z_-]{16}|[A-Za-z_-]*[a-z][A-Za-z_-]*[A-Z])[A-Za-z_-]{8,64}")
# A table that it prints has keys in it, however its columns are called.
_LISTS_KEYS = prepared(r"(?i)\b(?:keys list|auth(?:orization)? create|tokens? (?:create|add|list|new|issue))\b")
_KEEPING = ("secret", "-passw", "passwo", "pass", "gopass", "op rea", "lpass", "bw get", "rbw ge")
_ODD = prepared(r"[0-9!#$%^&*+~]")
# A word and a year, which is a month's where no word for a password stands before it.
_TITLED = prepared(
    r"(?!(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mai|Okt|Dez|CVE|Sprint|Step|Release|Version)[a-z]*-)[A-Z][a-z]{3,11}-\d{2,4}[!?]?"
)
_WORD = prepared(r"(?i)\bpass(?:word|wort|code|phrase)\b")
_LONGEST_LINE = 300


def find(view: View, places: list[int]) -> Iterator[Found]:
    """Find what stands below the lines at some places, which name a secret or print one."""
    text, position, table_end = view.text, 0, 0
    for place in places:
        if place < position or _BY_USER.match(text, place):
            continue
        position = text.find("\n", place) + 1
        if not position:
            return
        value = _past_prefixes(text, place, position) if text.endswith(_LABELS, place, position - 1) else position
        if (given := _GIVEN_BELOW.match(text, value)) and values.is_told(given[1]):
            yield Found(given.start(1), given.end(1), "printed-secret")
            continue
        value += text.startswith("\n", value)
        following = text[value : _line_end(text, value)].strip()
        is_word = " " not in following or _SHOWN.match(following)
        if not is_word and _is_phrase_below(text[place : position - 1], following):
            first = text.index(following, value)
            yield Found(first, first + len(following), "printed-secret")
            continue
        is_phrase = not is_word and text[place : place + 6].lower().startswith(_KEEPING) and phrases.is_odd_phrase(following)
        if not is_word and not is_phrase and not tables.ROW.search(following):
            # Neither a word of its own nor the row of a table: most lines need no more than this look.
            continue
        line = text[max(text.rfind("\n", max(0, place - _LONGEST_LINE), place) + 1, place - _LONGEST_LINE) : position - 1].strip()
        if is_phrase and _KEEPERS.search(line):
            yield Found(text.index(following, value), text.index(following, value) + len(following), "printed-secret")
        elif len(line) < _LONGEST_LINE:
            if value >= table_end:
                # A row of a table heads no other one.
                found, table_end = tables.read(text, line, value)
                yield from found
            yield from _below(text, line, value, is_word=bool(is_word))


def _is_phrase_below(label: str, following: str) -> bool:
    """Tell whether small words alone in a line are the phrase that the line above announces."""
    is_drawn = label.startswith(("xkcdpass", "diceware"))
    if not is_drawn and ("phrase" not in label.lower() or not label.rstrip().endswith(":")):
        return False
    words = following.split()
    return 3 < len(words) < 10 and following.islower() and all(map(str.isalpha, words)) and phrases.is_spoken_phrase(following)


def find_inserted(view: View, places: list[int]) -> Iterator[Found]:
    """Find the values that a statement puts into columns named after secrets."""
    position = 0
    for place in places:
        if place < position:
            continue
        start = view.text.rfind("(", max(0, place - _LONGEST_LINE), place)
        match = _INSERT.match(view.text, start) if start >= 0 else None
        if match:
            position = match.end()
            columns = [tables.bare(name) for name in match[1].split(",")]
            given = list(_ARGUMENT.finditer(view.text, match.start(2), match.end(2)))
            for name, value in zip(columns, given, strict=False):
                if value[1] and tables.names_secret(name) and not values.is_placeholder(value[1]):
                    yield Found(value.start(1), value.end(1), "listed-password")


def _below(text: str, line: str, place: int, *, is_word: bool) -> Iterator[Found]:
    if _LISTS_KEYS.search(line):
        yield from tables.key_cells(text, place)
    match = _NEXT.match(text, place) if is_word else None
    label = bool(match) and (line.rstrip(" \t*_`").endswith(_LABELS) or bool(_FIELD.fullmatch(line)))
    if match and (label or _DRAWS_WORDS.search(line)) and lookalikes.is_word_phrase(match[1]):
        yield Found(match.start(1), match.end(1), "printed-secret")
    if match and _KEEPERS.search(line) and values.is_odd(match[1]) and not values.is_harmless(match[1]):
        yield Found(match.start(1), match.end(1), "printed-secret")
        return
    if match and _LETTERS.fullmatch(match[1]) and _SHOWS_ONE.search(line) and not values.is_harmless(match[1]):
        yield Found(match.start(1), match.end(1), "printed-secret")
    if not match or not _ODD.search(match[1]):
        return
    if label and _TITLED.fullmatch(match[1]) and _WORD.search(line):
        yield Found(match.start(1), match.end(1), "printed-secret")
        return
    if (label or _prints(line)) and _is_printed(match[1], is_label=label):
        value = match[1].rstrip(",;")
        yield Found(match.start(1), match.start(1) + len(value), "printed-secret")
        for first, last in codes.alike_behind(text, match.start(1) + len(value), value) if label else ():
            yield Found(first, last, "printed-secret")


def _past_prefixes(text: str, announced: int, place: int) -> int:
    """Give the place behind the prefix that a log has before this line and the last, or before the next if this one is empty."""
    line = text.rfind("\n", max(0, announced - _LONGEST_LINE), announced) + 1
    prefix = _PREFIX.match(text, line, announced)
    if not prefix or not text.startswith(prefix[0].split()[0], place):
        return place
    for _ in range(2):
        prefix = _PREFIX.match(text, place)
        place = prefix.end() if prefix else place
        if text[place : place + 1] != "\n":
            break
        place += 1
    return place


def _line_end(text: str, place: int) -> int:
    return text.find("\n", place) % (len(text) + 1)


def _prints(line: str) -> bool:
    """Tell whether a line is a command that prints a secret."""
    prompt = tables.PROMPT.match(line)
    command = line[prompt.end() :] if prompt else line.lstrip()
    if _NOT_PRINTING.search(command):
        return False
    is_expression = bool(prompt) and kind_of(re.split(r"[^\w.]", command.rstrip(")]'\" \t"))[-1]) is not None
    return is_expression or (bool(prompt) and bool(re.match(r"[\w./-]+(?:[ \t]|$)", command))) or bool(_COMMAND.match(command))


def _is_printed(value: str, *, is_label: bool) -> bool:
    """Tell whether the line below is a secret: random, or a word with a number or a sign among its letters."""
    if value[-1] in ":({[" or "[redacted:" in value or values.is_harmless(value) or _assigns(value):
        return False
    if _ASKS_ON.fullmatch(value):
        return False
    if values.looks_random(value):
        return not values.is_numbered_id(value) or not is_label
    if "/" in value or value.count(":") > 1 or value[0] in "({[<#@":
        return False
    if value.rstrip("0123456789").lower() in _ORDINARY or (value.isupper() and value[:-1].isalpha()):
        return False
    return values.is_odd(value) and not (value.rstrip("!?").isalpha() or _is_file(value))


def _assigns(value: str) -> bool:
    """Tell whether a line gives a name its value, rather than being one that has such a sign in it."""
    name, sign, _ = _LINE_NUMBER.sub("", value.rstrip("=")).partition("=")
    if len(name) < 4 and not (name.islower() or name.isupper()):
        return False
    return bool(sign) and all(map(expressions.is_identifier, re.split(r"[.-]", name.lstrip("-+"))))


def _is_file(value: str) -> bool:
    return "." in value and value.rpartition(".")[2].islower() and len(value.rpartition(".")[2]) < 5 and value.islower()
