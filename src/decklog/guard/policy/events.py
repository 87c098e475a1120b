"""What the engine itself reports; the policy's `[[events]]` decide what each event means."""

from enum import StrEnum


class Event(StrEnum):
    """Something the engine sees that is not about one program."""

    UNPARSED = "unparsed"
    TOO_COMPLEX = "complexity"
    UNKNOWN_PROGRAM = "program-not-listed"
    UNKNOWN_NAME = "program-name-unknown"
    SUBSCRIPT_COMMAND = "subscript-command"
    FORK_BOMB = "function-forks-itself"
    PROCESS_FLOOD = "background-loop"
    STARTS_PROGRAM = "starts-program"
    OPAQUE_CODE = "code-unknown"
    RISKY_CODE = "code-risky"
    NETWORK_CODE = "code-from-network"
    DECODED_CODE = "code-decoded"
    REFUSED_LATER = "refused-code-written"
    MODULE = "module-not-listed"
    SOCKET = "socket-redirect"
    PRINTS_ENVIRONMENT = "prints-environment"
    PRINTS_SECRET = "prints-secret"
    ENDLESS_OUTPUT = "endless-output"
    PACKAGE = "package-not-listed"
