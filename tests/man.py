"""Writes the manual page, decklog(1), from the help."""

import click

from decklog.cli.main import EXITS_AND_OPTIONS, FIRST_SCREEN, Menu, menu
from tests.registry import commands


def man_page() -> str:
    """Return the page in the macros of man(7). It has no date, so that the same help gives the same page."""
    assert isinstance(menu, Menu)
    parts = [
        '.TH DECKLOG 1 "" "Decklog" "User Commands"',
        f".SH NAME\ndecklog \\- {_text((menu.help or '').rstrip('.').lower())}",
        ".SH SYNOPSIS\n.B decklog\n.I COMMAND\n[\\fIOPTIONS\\fR]",
        ".SH FIRST COMMANDS",
        *(_group(title, rows) for title, rows in FIRST_SCREEN),
        ".SH COMMANDS",
        *(_command(path, command) for path, command, _ in commands() if not command.hidden),
        f".SH OPTIONS AND EXIT CODES\n{_text(EXITS_AND_OPTIONS)}",
    ]
    return "\n".join(parts) + "\n"


def _group(title: str, rows: tuple[tuple[str, str], ...]) -> str:
    lines = [f".TP\n.B decklog {_text(words)}\n{_text(summary)}" for words, summary in rows]
    return "\n".join([f".SS {title}", *lines])


def _command(path: str, command: click.Command) -> str:
    summary = command.short_help or (command.help or "").partition("\n")[0]
    return f".TP\n.B {_text(path)}\n{_text(summary)}"


def _text(text: str) -> str:
    """Escape what the macros would take for their own."""
    escaped = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
