"""Adapters of frameworks record events in the background."""

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import sys
from decklog import Decklog
from decklog.plugins.adapters.recording import EventRecorder

class Sessions(EventRecorder):
    def close(self):
        print("ended its sessions")
        super().close()

sessions = Sessions(Decklog.open(sys.argv[1]), "claude-agent-sdk")
print("exits")
"""


def test_exit_ends_no_session_that_was_not_closed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", _PROGRAM, str(tmp_path / "log.db")]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "exits\n"
