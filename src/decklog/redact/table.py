"""The whole table of rules, in the order in which they are tried."""

from decklog.redact import rules_generic, rules_providers, rules_services, rules_shapes
from decklog.redact.rules import Rule

_MARKED: tuple[Rule, ...] = (
    rules_providers.CODE_HOSTS
    + rules_providers.CLOUDS
    + rules_providers.MODELS
    + rules_providers.PACKAGES
    + rules_services.PAYMENTS
    + rules_services.MESSAGES
    + rules_services.MONITORING
    + rules_services.VAULTS
    + rules_services.BUILDS
    + rules_services.CONTENT
)
# A rule that keeps what comes before the secret is found by that, not by a mark of the secret's own.
PREFIXED: tuple[Rule, ...] = tuple(rule for rule in _MARKED if not rule.keep)
SHAPED: tuple[Rule, ...] = rules_shapes.SHAPES
PLACED: tuple[Rule, ...] = (
    rules_generic.KEY_BLOCKS + tuple(rule for rule in _MARKED if rule.keep) + rules_generic.PLACES + rules_generic.COMMANDS
)

RULES: tuple[Rule, ...] = PREFIXED + SHAPED + PLACED
