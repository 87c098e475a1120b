"""The archives are built to the same bytes, the container's script serves, and compose names what exists."""

import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.db.processes import ROOT, environment
from tests.waiting import wait_until

# To be 1.5 MB; the rest is source that is still to shrink.
MOST_BYTES = 2_700_000


@pytest.mark.slow
def test_the_wheel_is_reproducible_and_small() -> None:
    words = [sys.executable, str(ROOT / ".ci/check_build.py"), "wheel"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = re.search(r"\.whl  ([\d,]+) bytes", done.stdout)
    assert found is not None
    assert int(found[1].replace(",", "")) < MOST_BYTES


def test_compose_starts_a_database_a_dashboard_and_a_proxy_on_this_machine_only() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"database", "dashboard", "proxy"}
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    name = services["dashboard"]["environment"]["DECKLOG_WEB_NAME"]
    assert name in (ROOT / "docker/Caddyfile").read_text(encoding="utf-8")


def test_the_dockerfile_copies_only_what_the_context_has() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")]
    copied = [word for line in re.findall(r"^COPY (?:--\S+ )?(.+)$", text, re.MULTILINE) for word in line.split()[:-1]]
    assert copied
    for name in copied:
        assert (ROOT / name).exists(), name
        assert name in allowed


@pytest.mark.slow
def test_the_containers_script_creates_the_log_and_serves_behind_a_proxy(tmp_path: Path, empty_postgres_url: str) -> None:
    port = "18471"
    variables = environment(
        HOME=str(tmp_path),
        PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin",
        DECKLOG_DB=empty_postgres_url,
        DECKLOG_WEB_PASSWORD="correct horse battery",
        DECKLOG_WEB_HOST="127.0.0.1",
        DECKLOG_WEB_PORT=port,
    )
    with subprocess.Popen(["sh", str(ROOT / "docker/serve.sh")], env=variables, cwd=tmp_path, stdin=subprocess.DEVNULL) as server:
        try:
            wait_until(lambda: _status(port, "localhost:8443") == 200)
            assert _status(port, "elsewhere.example") != 200
        finally:
            server.terminate()
    assert (tmp_path / ".decklog-web").stat().st_mode & 0o077 == 0


def _status(port: str, host: str) -> int | None:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/login", headers={"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as problem:
        return problem.code
    except OSError:
        return None
