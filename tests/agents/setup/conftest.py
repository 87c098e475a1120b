"""A repository with a log, a home, and programs of agents that are found on the path."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.setup.places import Here, Places
from tests.cli.conftest import Said
from tests.programs import call


@pytest.fixture
def places(tmp_path: Path) -> Places:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "bin").mkdir()
    return Places(tmp_path)


@pytest.fixture
def here(places: Places) -> Here:
    """Run `decklog` in the repository, with the home and the path of the test alone."""

    def run(*words: str, cwd: Path | None = None, **more: str) -> Said:
        done = call(list(words), cwd=cwd or places.repo, variables={**places.variables, **more})
        said = Said(done.code, done.out.decode(), done.err.decode())
        assert "Traceback" not in said.err + said.out, said
        return said

    return run


@pytest.fixture
def program(places: Places) -> Callable[..., Path]:
    """Put a program on the path: a script of Python."""

    def put(name: str, body: str) -> Path:
        path = places.root / "bin" / name
        path.write_text(f"#!/usr/bin/env python3\n{body}")
        path.chmod(0o755)
        return path

    return put


@pytest.fixture
def codex(program: Callable[..., Path], places: Places) -> Path:
    """A Codex that says its version and lists its hooks as the real one does, with hashes of its own."""
    return program("codex", CODEX.replace("@HOME@", json.dumps(os.fspath(places.home / ".codex"))))


CODEX = """
import hashlib, json, re, sys, tomllib
from pathlib import Path
if sys.argv[1] == "--version":
    print("codex-cli 0.166.0"); raise SystemExit
home = Path(@HOME@)
try:
    state = tomllib.loads((home / "config.toml").read_text()).get("hooks", {}).get("state", {})
except FileNotFoundError:
    state = {}
def listed(path):
    if not path.exists():
        return
    for event, groups in json.loads(path.read_text())["hooks"].items():
        snake = re.sub("(?<!^)(?=[A-Z])", "_", event).lower()
        for number, group in enumerate(groups):
            for index, handler in enumerate(group["hooks"]):
                key = f"{path}:{snake}:{number}:{index}"
                digest = "sha256:" + hashlib.sha256(json.dumps([event, handler]).encode()).hexdigest()
                trust = "trusted" if state.get(key, {}).get("trusted_hash") == digest else "untrusted"
                facts = {"key": key, "currentHash": digest, "trustStatus": trust, "sourcePath": str(path)}
                yield {**facts, "command": handler["command"]}
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        print(json.dumps({"id": message["id"], "result": {}}), flush=True)
        print(json.dumps({"method": "configWarning", "params": {}}), flush=True)
    elif message.get("method") == "hooks/list":
        cwd = message["params"]["cwds"][0]
        hooks = [*listed(home / "hooks.json"), *listed(Path(cwd) / ".codex" / "hooks.json")]
        print(json.dumps({"id": message["id"], "result": {"data": [{"cwd": cwd, "hooks": hooks}]}}), flush=True)
"""
