"""The whole table of rules, in the order in which they are tried."""

from decklog.redact.rules import (
    calls,
    ciphers,
    commands,
    daemons,
    entrances,
    fields,
    generic,
    hashers,
    providers,
    records,
    services,
    shapes,
    tools,
)
from decklog.redact.rules.rule import Rule

_MARKED: tuple[Rule, ...] = (
    providers.CODE_HOSTS
    + providers.CLOUDS
    + providers.MODELS
    + providers.PACKAGES
    + services.PAYMENTS
    + services.MESSAGES
    + services.MONITORING
    + services.VAULTS
    + services.BUILDS
    + services.CONTENT
)
# A rule that keeps what comes before the secret is found by that, not by a mark of the secret's own.
PREFIXED: tuple[Rule, ...] = tuple(rule for rule in _MARKED if not rule.keep)
SHAPED: tuple[Rule, ...] = shapes.SHAPES
PLACED: tuple[Rule, ...] = (
    generic.KEY_BLOCKS
    + tuple(rule for rule in _MARKED if rule.keep)
    + generic.PLACES
    + tuple(rule for rule in calls.CALLS if not rule.glued)
    + commands.COMMANDS
)

# Searched for apart: the tables of two matchers are smaller than that of one for both.
TOOLS: tuple[Rule, ...] = (
    fields.FIELDS
    + daemons.DAEMONS
    + entrances.ENTRANCES
    + records.RECORDS
    + ciphers.CIPHERS
    + hashers.HASHERS
    + tools.DEVICES
    + tuple(rule for rule in calls.CALLS if rule.glued)
    + tools.LOGINS
    + tools.STORES
)

# What is known by itself, whatever stands around it.
SURE = frozenset(rule.name for rule in PREFIXED + SHAPED + generic.KEY_BLOCKS)

AS_WRITTEN: tuple[Rule, ...] = commands.AS_WRITTEN

RULES: tuple[Rule, ...] = PREFIXED + SHAPED + PLACED + TOOLS + AS_WRITTEN
