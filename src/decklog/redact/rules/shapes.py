"""Tokens that start like any word and are known by something inside them.

They are kept apart because a text is only searched for one of them when it holds the telling part.
"""

from decklog.redact.rules.rule import Rule, rule

# Not a word boundary: each + and / would be one, and a base64 blob a thousand fresh starts.
_FRESH = r"(?:^|[^A-Za-z0-9+/=])"

SHAPES: tuple[Rule, ...] = (
    rule("azure-devops-token", "azdo", r"[a-z0-9]{52}AZDO[a-z0-9]{4}|[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    rule("azure-client-secret", "8q~ 7q~ q~", r"[A-Za-z0-9_.-]{3}[78]Q~[A-Za-z0-9_.~-]{31,34}"),
    rule("azure-search-key", "azse", r"[A-Za-z0-9]{42}AzSe[A-Za-z0-9]{6}"),
    rule("azure-storage-key", "+ast", r"[A-Za-z0-9+/]{76}\+ASt[A-Za-z0-9+/]{6}==", keep=_FRESH, glued=True),
    rule("azure-cosmos-key", "acdb", r"[A-Za-z0-9+/]{76}ACDb[A-Za-z0-9+/]{6}==", keep=_FRESH, glued=True),
    rule("azure-openai-key", "jqqj", r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}"),
    rule("zhipu-key", ".", r"[0-9a-f]{32}\.[A-Za-z0-9]{16}\b", random=True),
    rule("mailchimp-key", "-us", r"[0-9a-f]{32}-us\d{1,2}\b"),
    rule("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}"),
    rule("maxmind-key", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    rule("recovery-key", "-", r"\d{6}(?:-\d{6}){7}"),
    rule("telegram-token", ":aa", r"\d{8,10}:AA[\w-]{30,}", glued=True),
    rule("url-password", "@tcp( @unix( @udp(", r"[^\s\"'`]{1,96}", keep=r"[\w.+-]{1,64}:", until=r"@(?:tcp|udp|unix)\("),
    rule("discord-token", ".", r"(?:mfa\.[\w-]{60,}|[MNO][A-Za-z0-9_-]{22,27}\.[\w-]{6}\.[\w-]{27,38})"),
    rule("asana-token", "/", r"[012]/\d{10,}(?:/\d{10,})?:[0-9a-f]{32}"),
    rule("fcm-key", ":apa91b", r"AAAA[\w-]{7}:APA91b[\w-]{60,}"),
    rule("mailgun-key", "-", r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}\b"),
    rule("new-relic-key", "nral", r"[0-9a-f]{36}NRAL"),
)
