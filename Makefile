# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Stamps: Decklog's own dependencies, and those of development.
READY  := $(VENV)/.ready
STAMP  := $(VENV)/.installed
COMPILED := $(VENV)/.compiled
LOCK   := requirements.lock
DEV    := requirements-dev.lock
# Hide pip's warnings; errors are shown and end the command.
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq install
UV     := $(BIN)/uv --quiet pip install --python $(BIN)/python
IS_LOCKED := $(BIN)/python -c 'import sys; sys.exit(sys.version_info >= (3, 15))'
# Use files in memory if there is room: the tests sync to disk tens of thousands of times.
IN_MEMORY := if [ "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print ($$4 > 4000000) }')" = 1 ] && \
    awk '/^MemAvailable/ { enough = $$2 > 8000000 } END { exit !enough }' /proc/meminfo; then TMPDIR=/dev/shm; export TMPDIR; fi
MINUTES :=
PROGRAMS := 1000
# Keep compiled modules, even if the environment disables them: a test run starts hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test tested compiled test-full test-all test-slow test-failed test-agents test-browser explore programs coverage lint style types bench docs site screenshots dist lock hooks clean

demo: $(READY)
	@$(BIN)/decklog demo

# Check types in parallel with the tests; either fails the command.
test: $(STAMP)
	@$(MAKE) --no-print-directory --jobs 2 types tested

tested: compiled
	@$(IN_MEMORY); $(BIN)/pytest -n 3 --dist worksteal

# Compile new test files once, instead of in each test process. The tests report a file that can't be collected.
compiled: style
	@if [ ! $(COMPILED) -nt $(STAMP) ] || find src tests benchmarks -name '*.py' -newer $(COMPILED) | grep -q .; then \
	    touch $(COMPILED).begun; \
	    if $(BIN)/pytest --collect-only -qq >/dev/null 2>&1; then mv $(COMPILED).begun $(COMPILED); fi; \
	fi

# Repeated tests (kills, races, searches) in the numbers that the documentation names, and surfaces on PostgreSQL.
test-full: $(STAMP)
	@$(IN_MEMORY); DECKLOG_TEST_FULL=1 $(BIN)/pytest -n 3 --dist worksteal \
	    $$(grep -rlE --include='test_*.py' 'DECKLOG_TEST_FULL|import FULL|@given' tests) \
	    $(addprefix tests/,agents plugins/importers mcp models notify web)

# `make test`, then the tests it leaves out; no browser and no agents.
test-all: test test-slow

# The tests that `make test` leaves out: those marked `slow`, and the surfaces and importers on PostgreSQL.
test-slow: $(STAMP)
	@$(IN_MEMORY); $(BIN)/pytest -n 3 --dist worksteal --left-out

# Long random programs of edits and git commands, then new random examples, until a failure or for MINUTES=5.
explore: $(STAMP)
	@$(IN_MEMORY); $(BIN)/pytest -n 3 --dist worksteal tests/provenance/test_programs.py --left-out --programs $(PROGRAMS)
	@$(IN_MEMORY); $(BIN)/python -m tests.explore $(if $(MINUTES),--minutes $(MINUTES))

# PROGRAMS programs of each state machine on both engines, the same ones every time.
programs: $(STAMP)
	@$(IN_MEMORY); $(BIN)/pytest -n 3 --dist worksteal tests/machines --programs $(PROGRAMS)

# Run the tests that failed in the last run, one by one. TESTS are the arguments of that run.
test-failed: $(STAMP)
	@$(IN_MEMORY); $(BIN)/pytest -n 0 --last-failed --last-failed-no-failures none $(TESTS)

# The real agent programs with a fake model on loopback; `.ci/run` installs them.
test-agents: $(STAMP)
	@$(BIN)/python -c 'import acp, agents, claude_agent_sdk' 2>/dev/null || $(PIP) --editable '.[dev,editor]'
	@$(IN_MEMORY); $(BIN)/pytest -n 2 tests/agents/real tests/plugins/adapters/openai_agents tests/plugins/adapters/claude_sdk

# The dashboard in a real Chromium; `.ci/run` installs it.
test-browser: $(STAMP)
	@$(BIN)/python -c 'import playwright' 2>/dev/null || $(PIP) --editable '.[dev,browser]'
	@$(IN_MEMORY); $(BIN)/pytest -n 2 tests/browser

coverage: $(STAMP)
	@$(BIN)/coverage erase
	@$(IN_MEMORY); $(BIN)/python -m pytest -p tests.covered -n 3 --dist worksteal
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

lint: style types

style: $(STAMP)
	@$(BIN)/ruff check src tests benchmarks .ci
	@$(BIN)/ruff format --check src tests benchmarks .ci
	@$(BIN)/lint-imports

types: $(STAMP)
	@$(BIN)/mypy

bench: $(STAMP)
	@$(PIP) --editable '.[dev,bench]'
	@$(BIN)/python -m benchmarks

docs: $(STAMP)
	@$(BIN)/python -m tests.generate

# Build the documentation as a site in build/site. It loads nothing from other hosts.
site: $(STAMP)
	@$(BIN)/python -c 'import mkdocs' 2>/dev/null || $(PIP) --editable '.[dev,site]'
	@$(BIN)/mkdocs build --strict --clean --config-file site/mkdocs.yml
	@$(BIN)/python -m tests.site build/site

# Take the documentation's pictures of terminal screens and reports from real commands.
screenshots: $(STAMP)
	@$(BIN)/python -m tests.pictures

# Build the wheel and test it in an empty environment.
dist: $(STAMP)
	@rm -rf dist
	@$(BIN)/python .ci/check_build.py
	@$(BIN)/python -m hatchling build
	@$(PYTHON) -m venv --clear $(VENV)-dist
	@$(VENV)-dist/bin/python -m pip --disable-pip-version-check -qq install dist/*.whl
	@cd dist && ../$(VENV)-dist/bin/decklog --version && ../$(VENV)-dist/bin/decklog demo >/dev/null

# Pin the dependencies for all supported Pythons and platforms. UPGRADE=--upgrade takes the newest versions.
LOCKED := pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command 'make lock'
lock: $(READY)
	@$(BIN)/uv $(LOCKED) --extra dev $(UPGRADE) --output-file $(DEV) pyproject.toml
	@$(BIN)/uv $(LOCKED) --group install --constraint $(DEV) $(UPGRADE) --output-file $(LOCK) pyproject.toml

# Install the pre-commit hook that lints.
hooks: $(STAMP)
	@$(BIN)/pre-commit install

$(READY): pyproject.toml $(LOCK)
	@echo "Setting up $(VENV) (once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Decklog needs Python 3.11 or newer")'
	@$(PYTHON) -m venv $(VENV)
	@if $(IS_LOCKED); then \
	    $(PIP) --no-deps --require-hashes --requirement $(LOCK) && $(PIP) --no-deps --no-build-isolation --editable .; \
	else \
	    echo "$(LOCK) is for Python 3.11 to 3.14: taking what is newest instead"; $(PIP) --editable .; \
	fi
	@$(BIN)/python -c 'import decklog, apsw'
	@touch $@

# uv takes a tenth of pip's time. It ignores pip's settings, so pip is the fallback.
$(STAMP): pyproject.toml $(DEV) $(READY)
	@echo "Setting up $(VENV) for development (once)"
	@if $(IS_LOCKED); then \
	    $(UV) --no-deps --require-hashes --requirement $(DEV) || $(PIP) --no-deps --require-hashes --requirement $(DEV); \
	else \
	    $(PIP) --editable '.[dev]'; \
	fi
	@$(BIN)/python -c 'import pytest'
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-dist dist
