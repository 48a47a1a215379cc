# Two commands matter: `make demo` and `make test`. Both set up .venv first; a second run does not reinstall.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-deep test-optimized test-apache lint lint-types lint-rest compile-tests format docs setup lock clean

demo: $(STAMP)
	$(BIN)/mqproof demo

# Three workers for two cores: many tests wait, for processes that start and for elections.
# With this variable, each of the processes that the tests start would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

test: $(STAMP)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint-types lint-rest compile-tests
	$(BIN)/pytest -n 3 --dist loadfile -m "not deep and not apache"

# The tests of the servers and the client without `assert` statements, as with `python -O`: they check no input.
test-optimized: $(STAMP)
	PYTHONOPTIMIZE=1 $(BIN)/pytest -n 2 --dist loadfile -m "not deep and not apache" \
	  -W "ignore:assertions not in test modules" tests/impl

test-deep: lint test-optimized
	HYPOTHESIS_PROFILE=deep $(BIN)/pytest -n 2 --dist loadfile -m "not apache"

# Needs Maven, a JDK 17, Go, and their package registries at its first run; without them it says what was not
# tested.
test-apache: $(STAMP)
	$(BIN)/pytest -n 2 --dist loadfile -m apache tests/interop tests/conformance/adapters/apache tests/conformance/suites/routing \
	  tests/conformance/wire tests/conformance/hostile tests/fuzz/test_released_faults.py

lint: lint-rest lint-types

lint-types: $(STAMP)
	$(BIN)/mypy

lint-rest: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/vulture

# Writes the bytecode of the tests; otherwise each worker would compile all of them.
compile-tests: $(STAMP)
	$(BIN)/pytest --collect-only -qq > /dev/null

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Builds the documentation site into build/site; a broken link, or a page outside the navigation, is an error.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "Open build/site/index.html in a browser."

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "mqproof needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@echo "Installing mqproof[dev] and the $$(grep -c == constraints.txt) packages of constraints.txt into $(VENV):"
	@grep -o '^[^ ]*==[^ ]*' constraints.txt | paste -sd ' ' - | fold -s -w 100 | sed 's/^/  /'
	@echo "About 2 GiB on disk, mostly Spark, PyArrow, numba and Z3. This takes a few minutes."
	$(PYTHON) -m venv --clear $(VENV)
	@# Python compiles a module when it is first imported; to compile all of them would take 20 seconds.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes \
	  --requirement constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@echo "Installed $$($(BIN)/python -m pip list --format=freeze | wc -l) packages," \
	  "$$(du -sm $(VENV) | cut -f1) MiB, in $(VENV). Run $(BIN)/mqproof --help."
	@touch $@

# Writes constraints.txt: the versions and sha256 hashes that fit pyproject.toml. Versions that it has already stay;
# to raise one: make lock UPGRADE='--upgrade-package NAME'. Needs uv on the PATH (pip install uv).
lock:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --extra dev $(UPGRADE) \
	  --no-emit-package mqproof --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  --output-file constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) build
