# Two commands matter: `make demo` and `make test`. Both set up .venv first; a second run does not reinstall.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-deep test-apache lint format setup clean

demo: $(STAMP)
	$(BIN)/mqproof demo

test: lint
	$(BIN)/pytest -n 2 --dist loadgroup -m "not deep and not apache"

test-deep: lint
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest -n 2 --dist loadgroup -m "not apache"

# Needs Maven, a JDK 17 and Maven Central at its first run; without them it says what was not tested.
test-apache: $(STAMP)
	$(BIN)/pytest -n 2 --dist loadgroup -m apache tests/interop tests/conformance/adapters/apache tests/conformance/suites/routing \
	  tests/conformance/wire

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "mqproof needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build
