# Every target sets up .venv by itself; when pyproject.toml and the lock have not changed, that costs nothing.
# Needs Python 3.11 or newer, make and git. Choose a Python with `make PYTHON=...`.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
LOCK := ci/requirements-dev.lock
STAMP := $(VENV)/.set-up
REPORT := build/requirements.json
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check

PYTHON ?= $(shell sh ci/find-python)
PYTEST_ARGS ?= -n 2
DEMO_ARGS ?=
BENCH_ARGS ?=
PROVE_ARGS ?=

.PHONY: help
help: ## What can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '%-26s%s\n' "$$name" "$$text"; done

.PHONY: setup
setup: $(STAMP) ## Create .venv with the locked versions, if anything changed

$(STAMP): pyproject.toml $(LOCK)
	@echo "setting up $(VENV)"
	@test -n "$(PYTHON)"
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@$(PIP) install --requirement $(LOCK)
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: demo
demo: $(STAMP) ## A run is killed in the middle of a tool, reopened and resumed (DEMO_ARGS="--backend sqlite")
	@$(BIN)/restartpoint demo $(DEMO_ARGS)

.PHONY: test
test: check ## Everything that must hold before a change lands
	@mkdir -p build
	@$(BIN)/python -m pytest $(PYTEST_ARGS) --requirements-report=$(REPORT)
	@$(BIN)/python -m ci.coverage_of_requirements --brief $(REPORT)

.PHONY: check
check: format-check lint types imports docs ## All static checks

.PHONY: format format-check lint types imports docs
format: $(STAMP) ## Format the sources and repair what ruff can repair
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

format-check: $(STAMP)
	@$(BIN)/ruff format --check --quiet . || { echo "not formatted: run make format"; $(BIN)/ruff format --check .; exit 1; }

lint: $(STAMP)
	@$(BIN)/ruff check --quiet .

types: $(STAMP)
	@$(BIN)/mypy --no-error-summary

imports: $(STAMP)
	@$(BIN)/lint-imports > build-imports.log 2>&1 && rm build-imports.log || { cat build-imports.log; rm build-imports.log; exit 1; }

docs: $(STAMP) ## Build the documentation strictly, into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.PHONY: bench
bench: $(STAMP) ## Speed beside its bound, as JSON lines (BENCH_ARGS are passed on)
	@$(BIN)/python -m ci.bench $(BENCH_ARGS)

.PHONY: prove
prove: $(STAMP) ## Properties of the model's functions, confirmed over all paths (PROVE_ARGS are passed on)
	@$(BIN)/python -m ci.prove $(PROVE_ARGS)

.PHONY: mutants
mutants: $(STAMP) ## Which small faults of the model its tests would not notice (MUTANTS_ARGS are passed on)
	@$(BIN)/python -m ci.mutants $(MUTANTS_ARGS)

.PHONY: coverage-of-requirements
coverage-of-requirements: $(STAMP) ## Which requirements have a passing test, by section
	@mkdir -p build
	@$(BIN)/python -m pytest --quiet --no-header -r fE $(PYTEST_ARGS) --requirements-report=$(REPORT) || echo "(some tests failed; they cover nothing)"
	@$(BIN)/python -m ci.coverage_of_requirements $(REPORT)

.PHONY: matrix
matrix: $(STAMP) ## The test suite on every Python from 3.11 to 3.14 that this machine has
	@$(BIN)/python -m ci.matrix $(MATRIX_ARGS)

.PHONY: lock
lock: $(STAMP) ## Resolve the locked versions anew
	@"$(PYTHON)" ci/lock.py

.PHONY: clean
clean: ## Remove what was built (not .venv)
	rm -rf build dist site .matrix .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
