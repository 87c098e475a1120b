"""Tools that the scripted agents call."""

import asyncio
import os
import signal

from agents import function_tool


@function_tool
def read(path: str) -> str:
    """Read a file."""
    return f"text of {path}"


@function_tool
def fail() -> str:
    """Fail."""
    raise ValueError("it does not work")


@function_tool
async def wait() -> str:
    """Wait for ever."""
    await asyncio.sleep(60)
    return "never"


@function_tool
def kill() -> str:
    """End the process without a word."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"
