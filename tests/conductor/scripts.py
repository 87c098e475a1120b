"""Scripts of the fake agent, and how it is called."""

import json
import os
import sys
from pathlib import Path
from typing import Any

FAKE_AGENT = Path(__file__).with_name("fake_agent.py")
COMMAND = [os.path.realpath(sys.executable), "-I", "-S", str(FAKE_AGENT)]


def script(*steps: list[Any]) -> str:
    """Write a script as an agent is told it."""
    return "SCRIPT " + json.dumps(steps)
