"""Newcomers reach the first useful screen in few commands."""

from pathlib import Path

import pytest

from tests.newcomers.play import play_builder, play_daily_user, play_owner


@pytest.mark.slow
def test_a_daily_user_sees_the_cost_of_real_sessions_in_four_commands(tmp_path: Path) -> None:
    played = play_daily_user(tmp_path)
    assert len(played.commands) <= 4, played.commands
    assert "Imported 1 session of Claude Code" in played.screen
    assert played.bytes_read < 2000


@pytest.mark.slow
def test_a_builder_needs_three_lines_of_shell_and_twelve_of_python(tmp_path: Path) -> None:
    played = play_builder(tmp_path)
    assert len(played.commands) <= 3, played.commands
    assert played.python_lines <= 12


@pytest.mark.slow
def test_an_owner_answers_and_sets_a_limit_in_four_commands(tmp_path: Path) -> None:
    played = play_owner(tmp_path)
    assert len(played.commands) <= 4, played.commands
