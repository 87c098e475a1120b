# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# What Decklog itself needs, and what its development needs.
READY  := $(VENV)/.ready
STAMP  := $(VENV)/.installed
COMPILED := $(VENV)/.compiled
LOCK   := requirements.lock
DEV    := requirements-dev.lock
# Warnings are not for the newcomer; errors are shown, and end the command.
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq install
UV     := $(BIN)/uv --quiet pip install --python $(BIN)/python
IS_LOCKED := $(BIN)/python -c 'import sys; sys.exit(sys.version_info >= (3, 15))'
# Files in memory where there is room for them: the tests sync to disk tens of thousands of times. What others have put there
# takes memory away from programs too.
IN_MEMORY := if [ "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print ($$4 > 4000000) }')" = 1 ] && \
    awk '/^MemAvailable/ { enough = $$2 > 8000000 } END { exit !enough }' /proc/meminfo; then TMPDIR=/dev/shm; export TMPDIR; fi
MINUTES :=
PROGRAMS := 1000
# What Python has compiled is kept, whatever the surroundings say: a test run starts hundreds of processes, each of which would
# compile every module anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test tested compiled test-full test-all test-slow test-failed test-agents test-browser explore programs coverage lint style types bench docs site screenshots dist lock hooks clean

demo: $(READY)
	@$(BIN)/decklog demo

# Types are checked beside all else, which need not wait for them: either fails the command.
test: $(STAMP)
	@$(MAKE) --no-print-directory --jobs 2 types tested

tested: compiled
	@$(IN_MEMORY); $(BIN)/pytest -n 3 --dist worksteal

# Compile new test files once: each process of the tests would do it again.
# Where no file is newer than the last time it is all there. A file that can't be collected is shown by the tests. None begins before
# the style is right.
compiled: style
	@if [ ! $(COMPILED) -nt $(STAMP) ] || find src tests benchmarks -name '*.py' -newer $(COMPILED) | grep -q .; then \
	    touch $(COMPILED).begun; \
	    if $(BIN)/pytest --collect-only -qq >/dev/null 2>&1; then mv $(COMPILED).begun $(COMPILED); fi; \
	fi

# Those tests whose size is a matter of number alone, at the size of the claims in the documents; and what `make test` tries on
# SQLite alone.
test-full: $(STAMP)
	@$(IN_MEMORY); DECKLOG_TEST_FULL=1 $(BIN)/pytest -n 3 --dist worksteal \
	    $$(grep -rlE --include='test_*.py' 'DECKLOG_TEST_FULL|import FULL|@given' tests) \
	    $(addprefix tests/,agents plugins/importers mcp models notify web)

# Everything that needs no browser and no agents: `make test`, then the tests it leaves out.
test-all: test test-slow

# The tests that `make test` leaves out: those marked `slow`, and the surfaces and importers on PostgreSQL.
test-slow: $(STAMP)
	@$(IN_MEMORY); $(BIN)/pytest -n 3 --dist worksteal --left-out

# Long programs of edits and git commands, then examples other than those of `make test`: until something is found, or for
# MINUTES=5.
explore: $(STAMP)
	@$(IN_MEMORY); $(BIN)/pytest -n 3 --dist worksteal tests/provenance/test_programs.py --left-out --programs $(PROGRAMS)
	@$(IN_MEMORY); $(BIN)/python -m tests.explore $(if $(MINUTES),--minutes $(MINUTES))

# So many programs of each state machine, on both engines; the same ones every time.
programs: $(STAMP)
	@$(IN_MEMORY); $(BIN)/pytest -n 3 --dist worksteal tests/machines --programs $(PROGRAMS)

# The tests that failed in the last run, one by one. TESTS are those that the run began with.
test-failed: $(STAMP)
	@$(IN_MEMORY); $(BIN)/pytest -n 0 --last-failed --last-failed-no-failures none $(TESTS)

# The real agent programs against a model on loopback; `.ci/run` installs them.
test-agents: $(STAMP)
	@$(BIN)/python -c 'import acp, agents, claude_agent_sdk' 2>/dev/null || $(PIP) --editable '.[dev,editor]'
	@$(IN_MEMORY); $(BIN)/pytest -n 2 tests/agents/real tests/plugins/adapters/openai_agents tests/plugins/adapters/claude_sdk

# A real Chromium at a real dashboard; `.ci/run` installs one. The rest of `make test` says that it was left out where there is none.
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

# The documents as a site, in build/site: nothing in it is loaded from another host.
site: $(STAMP)
	@$(BIN)/python -c 'import mkdocs' 2>/dev/null || $(PIP) --editable '.[dev,site]'
	@$(BIN)/mkdocs build --strict --clean --config-file site/mkdocs.yml
	@$(BIN)/python -m tests.site build/site

# What the documents show of the terminal and of reports, from real commands.
screenshots: $(STAMP)
	@$(BIN)/python -m tests.pictures

# What is handed out, proven by installing it where nothing else is.
dist: $(STAMP)
	@rm -rf dist
	@$(BIN)/python .ci/check_build.py
	@$(BIN)/python -m hatchling build
	@$(PYTHON) -m venv --clear $(VENV)-dist
	@$(VENV)-dist/bin/python -m pip --disable-pip-version-check -qq install dist/*.whl
	@cd dist && ../$(VENV)-dist/bin/decklog --version && ../$(VENV)-dist/bin/decklog demo >/dev/null

# Pins what pyproject.toml asks for, for every Python and machine at once. UPGRADE=--upgrade takes the newest of everything.
LOCKED := pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command 'make lock'
lock: $(READY)
	@$(BIN)/uv $(LOCKED) --extra dev $(UPGRADE) --output-file $(DEV) pyproject.toml
	@$(BIN)/uv $(LOCKED) --group install --constraint $(DEV) $(UPGRADE) --output-file $(LOCK) pyproject.toml

# Lint before each commit, from now on.
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

# By uv, which takes a tenth of pip's time for a hundred packages; where it does not find them (it knows nothing of pip's
# settings), pip does.
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
