"""What a command answers: a sentence for people, and JSON or text for programs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

NOTHING = object()


class ProgramReply:
    """An answer. `said` is dropped by --quiet; a value that says `success: false` is a failure."""

    def __init__(
        self, value: "Any" = NOTHING, *, said: str | None = None, text: str | None = None, line: bool = False, code: int = 0
    ) -> None:
        self.value = value
        self.said = said
        self.text = text
        self.line = line
        self.code = code

    @property
    def exit_code(self) -> int:
        failed = isinstance(self.value, dict) and self.value.get("success") is False
        return 1 if failed else self.code

    def shown(self, *, quiet: bool) -> str:
        """Write the answer as standard output has it."""
        parts = []
        if self.said and not quiet and not self.exit_code:
            parts.append(f"\u2713 {self.said}")
        if self.text is not None:
            parts.append(self.text)
        if self.value is not NOTHING and not (quiet and self.line):
            import json

            parts.append(json.dumps(self.value, indent=None if self.line else 2))
        return "".join(part + "\n" for part in parts)
