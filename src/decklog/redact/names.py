"""Which names announce a secret: `DB_PASSWORD`, `accessToken`, but not `max_tokens` or `primary_key`."""

from decklog.prepared import prepared
from decklog.redact.placeholders import word_set

_CAMEL = prepared(r"([a-z0-9])([A-Z])|([A-Z]+)([A-Z][a-z])")
_SEPARATORS = prepared(r"[^a-z0-9]+")

_TRAILING = word_set(
    """
    prod production dev development staging stage test testing live main primary secondary backup old new
    base value val data b64 base64 hex raw plain plaintext text confirm confirmation again repeat env default string
    str local remote master slave root admin current previous prev v1 v2 v3 a b one two
    """
)
_PASS_ENDS = (
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "passwort",
    "kennwort",
    "contrasena",
    "motdepasse",
    "wachtwoord",
    "passord",
    "salasana",
    "adgangskode",
    "pasword",
    "passowrd",
    "passwrod",
    "pssword",
    "paswd",
    "jelszo",
    "lozinka",
    "geslo",
    "losenord",
    "palavrapasse",
)
_PASS_WORDS = word_set(
    """
    pass pwd pw psk dbpass userpass storepass keypass sshpass smtppass rootpass adminpass mypass mypwd dbpwd
    userpwd mysqlpwd requirepass masterauth pgpass ftppass mailpass emailpass senha passw pswd psw passwrd
    pword authtok heslo haslo parola mdp bindpw rootpw adminpw userpw dbpw olcrootpw
    """
)
_PASSING_BY = (
    "bypass",
    "compass",
    "surpass",
    "trespass",
    "overpass",
    "underpass",
    "onepass",
    "twopass",
    "firstpass",
    "multipass",
)
_KEY_OWNERS = word_set(
    """
    api access secret private encryption encrypt decryption signing sign master account auth
    authentication deploy deployment ssh service admin shared app application subscription consumer session
    server license integration write ingest functions function maps sas hmac jwt webhook bot root crypto
    cipher aes rsa gpg pgp wallet security client openai anthropic claude aws google gcp azure stripe
    sendgrid mailgun twilio datadog newrelic github gitlab slack algolia cohere mistral groq gemini pinecone
    langchain langsmith tavily serpapi huggingface hf replicate together fireworks deepseek openrouter
    perplexity elevenlabs postmark resend segment amplitude mixpanel sentry snyk sonar rapid rapidapi x
    subscriptionkey management mgmt preshared psk decrypt token password passwd symmetric hashing cookie
    csrf developer dev user backup recovery unlock vault seal unseal host instrumentation
    """
)
_PLAIN_KEYS = word_set(
    """
    apikey secretkey privatekey accesskey authkey signingkey encryptionkey masterkey accountkey sharedkey
    sharedaccesskey subscriptionkey sshkey deploykey appkey servicekey serverkey consumerkey secretaccesskey
    jwtkey sessionkey
    """
)
_PUBLIC = word_set(
    """
    site public pub publishable primary foreign partition sort cache idempotency dedupe dedup deduplication unique
    lookup row composite shard natural surrogate candidate translation message locale i18n metric label
    verify verifying verification verifier tag event feature flag option map dict group order range join index socket websocket
    """
)
_CODE_OWNERS = word_set(
    "unlock access door gate alarm safe entry pin recovery backup rescue activation puk pairing invite otp mfa"
)
# What a chart or a manifest is told the name of, and what a list of known ones has the digest of.
_SECRETS_BY_NAME = word_set("existing pull hashed")
_PAT_OWNERS = word_set(
    """
    github gh gitlab gl azure devops ado personal git bitbucket docker hub snowflake databricks nuget npm maven
    artifactory nexus vsts tfs vsce marketplace jira confluence atlassian airtable gitea forgejo renovate
    """
)
_TOKEN_OWNERS_PLAIN = word_set(
    """
    next page continuation pagination cancellation cancel stop start end eos bos pad unk sep cls mask
    special max min num n first last prev previous sync resume delta watermark per total count input output
    prompt completion cached budget syntax lex lexer parser current publickey
    """
)


# What a form says.
_LABELS = word_set("label lbl hint placeholder i18n")
# Whether there is one: `isSecret`, `has_password`.
_ASKED = word_set("is has issecret ispassword haspassword")


def words(name: str) -> list[str]:
    """Split a name into its lower-case words, whatever its style."""
    spaced = _CAMEL.sub(r"\1\3_\2\4", name)
    return [word for word in _SEPARATORS.split(spaced.lower()) if word]


_MOST_KNOWN = 4_096
_known: dict[str, str | None] = {}


def known_kind(name: str) -> str | None:
    """Tell which kind of secret a name announces, remembering the names seen before."""
    if name not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[name] = kind_of(name)
    return _known[name]


def kind_of(name: str) -> str | None:
    """Tell which kind of secret a name announces, or None."""
    parts = words(name[-96:])
    while len(parts) > 1 and (parts[-1].isdigit() or parts[-1] in _TRAILING):
        parts.pop()
    if (
        not parts
        or parts[0] in _ASKED
        or (len(parts) > 1 and parts[0] in _LABELS)
        or (parts[0] == "existing" and "secret" in parts)
    ):
        return None
    last = parts[-1].rstrip("0123456789")
    before = parts[-2] if len(parts) > 1 else ""
    if _is_session(last, before, parts):
        return "session"
    return _password(last, before) or _secret(last, before) or _token(last, before, parts) or _key(last, before)


def _is_session(last: str, before: str, parts: list[str]) -> bool:
    """Tell whether a name is that of the cookie or the header that keeps somebody logged in; others number their sessions too."""
    if last.endswith("sessid") or (last.endswith("sessionid") and len(parts) == 1):
        return True
    if last == "sid":
        return before == "connect"
    return last == "id" and before == "session" and len(parts) > 2 and parts[-3] in ("x", "net")


def _password(last: str, before: str) -> str | None:
    if last.endswith(_PASS_ENDS) or last in _PASS_WORDS or (last.endswith(("pass", "psk")) and not last.endswith(_PASSING_BY)):
        return "password"
    if (last == "passe" and before in ("de", "palavra")) or (last == "phrase" and before in ("pass", "seed", "secret")):
        return "password"
    if last in ("pin", "pincode") or (last == "code" and before in _CODE_OWNERS):
        return "pin"
    return None


def _secret(last: str, before: str) -> str | None:
    if last == "secret" and before in _SECRETS_BY_NAME:
        return None
    if last.endswith("secret") or (last == "seed" and before in ("otp", "totp", "mfa", "secret", "wallet")):
        return "secret"
    if last == "credentials" and before in ("bind", "security"):
        # Of a directory: what goes with the name that binds to it.
        return "password"
    if last in ("credential", "credentials", "creds", "cred") or (last == "pepper" and before):
        return "credential"
    return "secret" if (before, last) in (("secret", "hash"), ("key", "material")) else None


def _token(last: str, before: str, parts: list[str]) -> str | None:
    if last == "token" and parts[-3:-1] == ["public", "key"]:
        # Of an assembly: the digest of a key that everybody may have.
        return None
    if last.endswith("webtoken") and len(parts) < 4:
        # The name of a standard and of the packages for it.
        return None
    if last.endswith("token") and before not in _TOKEN_OWNERS_PLAIN:
        return None if last[:-5] in _TOKEN_OWNERS_PLAIN and last != "token" else "token"
    if last in ("jwt", "bearer") or (last == "pat" and not _PAT_OWNERS.isdisjoint(parts)):
        return "token"
    if last == "authorization":
        return "auth"
    if last == "auth":
        return "auth"
    return None


def _key(last: str, before: str) -> str | None:
    if last in _PLAIN_KEYS or last.endswith("apikey"):
        return "api-key"
    if last == "key" and before in _KEY_OWNERS:
        return "api-key"
    if last == "storagekey" or (last == "key" and before and before not in _PUBLIC):
        # A browser's storage has keys that are names: only what is random is one of a cloud's.
        return "key"
    if (last == "salt" and before) or last == "wif" or (last == "keys" and before in _KEY_OWNERS):
        return "key"
    return None
