# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test search lint bench docs clean

demo: $(STAMP)
	@$(BIN)/decklog demo

# Files in memory where there is room for them: the tests sync to disk tens of thousands of times.
test: $(STAMP) lint
	@if [ "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print ($$4 > 4000000) }')" = 1 ]; then TMPDIR=/dev/shm; export TMPDIR; fi; \
	$(BIN)/pytest -n 2 --dist worksteal

# The property tests with examples drawn anew each time; what they find belongs into a test of its own.
search: $(STAMP)
	@HYPOTHESIS_PROFILE=search $(BIN)/pytest -n 2 -m hypothesis

lint: $(STAMP)
	@$(BIN)/ruff check src tests benchmarks
	@$(BIN)/ruff format --check src tests benchmarks
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,bench]'
	@$(BIN)/python -m benchmarks

docs: $(STAMP)
	@$(BIN)/python -m tests.generate

$(STAMP): pyproject.toml
	@echo "Setting up $(VENV) (once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Decklog needs Python 3.11 or newer")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' 2>&1 | grep -v '^WARNING' || true
	@$(BIN)/python -c 'import decklog, apsw, pytest'
	@touch $@

clean:
	rm -rf $(VENV)
