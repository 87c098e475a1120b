"""Which machine an address names."""

from decklog.guard.policy.policy import Policy
from decklog.guard.policy.shell.words import UNKNOWN


def host_of(policy: Policy, url: str) -> str:
    """Give the host a URL names, in lower case, UNKNOWN if that can't be told."""
    found = policy.patterns["url"].match(url)
    return found[1].lower() if found and UNKNOWN not in found[1] else UNKNOWN


def is_local(policy: Policy, host: str) -> bool:
    """Tell whether a host is this machine."""
    return host in policy.names["loopback"] or host.startswith("127.") or host.endswith(".localhost")
