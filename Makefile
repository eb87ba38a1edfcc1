# Each target works alone on a fresh clone, is quick the second time, and asks nothing.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
STAMP := $(VENV)/.installed
RUNS := $(VENV)/.runs

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# The pipeline's stages call `ldp`: the one of this environment, not another that may be on the user's path.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PIP_NO_INPUT := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export DVC_NO_ANALYTICS := 1
# Some machines forbid Python to keep what it has compiled: each of the many processes would then compile torch anew.
unexport PYTHONDONTWRITEBYTECODE
# Tests in one process for each processor; what is left of the longest list goes to whoever is done.
PARALLEL := -n logical --maxprocesses 8 --dist worksteal

.PHONY: help install demo test test-elsewhere mutations spotcheck check types docs clean

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 24

install: $(STAMP) ## create .venv and install everything pinned in constraints.txt

# The pipeline's part comes first and alone, so that a first look does not wait for what tests need.
$(RUNS): pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: needs Python 3.11 or newer; say which one with make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -m venv $(VENV) || \
	  { echo "error: $(PYTHON) cannot create an environment; on Debian: apt-get install python3.11-venv" >&2; exit 2; }
	$(VENV)/bin/python -m pip install --quiet 'pip>=26'  # Python 3.11's own takes twice as long to look things up
	$(VENV)/bin/python -m pip install --quiet --no-compile --editable '.[pipeline]' --constraint constraints.txt
	@touch $@

$(STAMP): $(RUNS)
	$(VENV)/bin/python -m pip install --quiet --no-compile --editable '.[dev]' --constraint constraints.txt
	@touch $@

demo: $(RUNS) ## run the default pipeline, print its table and the path of the report page
	@echo "a table of Cora and CiteSeer, 90 seconds to 3 minutes on two idle processors; its page will be"
	@echo "$(CURDIR)/results/report.html, in the place of the committed one; each stage says how far it is"
	@dvc repro < /dev/null
	@ldp tables
	@echo
	@echo "report page: $(CURDIR)/results/report.html"

test: $(STAMP) ## run the whole test suite, slow tests included, and name the slowest; TESTS=tests/audit for a part of it
	@python -m pytest $(PARALLEL) --durations=15 $(TESTS)

test-elsewhere: $(STAMP) ## run the numerical tests as other machines would: other instructions, threads, locales, folders
	@python tools/elsewhere.py $(VARIATIONS)

mutations: $(STAMP) ## plant every fault of tools/mutations/ in a copy, and see that the tests notice it
	@python tools/mutations.py $(FAULTS)

spotcheck: $(STAMP) ## compute a few committed cells of experiments and papers again, others at each commit
	@python tools/spotcheck.py

check: $(STAMP) ## lint, format, types, import arrows, fast tests, and whether the pipeline is well formed
	@ruff format --check .
	@ruff check .
	@tools/typecheck
	@python -m pytest tests/test_arrows.py
	@python -m pytest $(PARALLEL) -m 'not slow' --ignore tests/test_arrows.py
	@dvc dag < /dev/null > /dev/null

types: $(STAMP) ## mypy --strict alone
	@tools/typecheck

docs: $(STAMP) ## write docs/cli.md from the app
	@python tools/cli_page.py

clean: ## remove the environment and caches; data/ and results/ stay
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
