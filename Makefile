# `make` lists the targets. Needs a Python of 3.11 or later with its venv module; `make setup` installs the rest into .venv.
#
#   PYTHON=python3.12   another interpreter for a new virtual environment
#   VENV=               no virtual environment: $(PYTHON) runs from the checkout and finds the packages itself
#   JOBS=4              test processes
#   RECORD=FILE         where `make gpu` writes its record
#   ARGS='...'          further options for pytest (test, gpu, golden) or for the benchmarks (bench)

PYTHON ?= python3
VENV   ?= .venv
JOBS   ?= 2
RECORD ?= tests/hardware.json
ARGS   ?=

# A machine with a GPU often can't install: there a PYTHONPATH stands for the virtual environment.
ifneq ($(filter gpu bench,$(MAKECMDGOALS)),)
ifneq ($(PYTHONPATH),)
VENV :=
endif
endif

ifeq ($(VENV),)
STAMP :=
BIN   :=
PY    := $(PYTHON)
else
STAMP := $(VENV)/.wgdsl-installed
BIN   := $(VENV)/bin/
PY    := $(VENV)/bin/python
endif
PYTEST := $(PY) -m pytest

.DEFAULT_GOAL := help
.PHONY: help setup demo test full mutants lint format gpu golden bench clean

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
	  printf '  make %-8s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## a virtual environment with wgdsl (editable) and the development tools

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "wgdsl needs Python 3.11 or later, which '$(PYTHON)' isn't; name one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(STAMP) ## attention: its report, then run (on a GPU, else simulated) and checked; compiled for every target
	$(PY) examples/attention/run.py --demo

test: $(STAMP) ## every test that needs no GPU, the slow ones left out
	$(PYTEST) -n $(JOBS) -m "not gpu and not slow" $(ARGS)

full: $(STAMP) ## every test that needs no GPU, the slow ones too, with the thorough random tests
	$(PYTEST) -n $(JOBS) -m "not gpu" --hypothesis-profile=thorough $(ARGS)

mutants: $(STAMP) ## every mutant of every shipped schedule through the verifier (`make full` has it too); reports into out/
	@rm -rf out/mutants
	$(PYTEST) -n $(JOBS) tests/tools/test_every_mutant.py $(ARGS); status=$$?; \
	  cat out/mutants/*.txt > out/mutants.txt && echo "reports: out/mutants.txt"; exit $$status

lint: $(STAMP) ## ruff, pyright and the rule of forms and steps
	$(BIN)ruff check .
	$(BIN)ruff format --check .
	$(BIN)pyright
	$(BIN)lint-imports

format: $(STAMP) ## let ruff format and mend what it can
	$(BIN)ruff check --fix .
	$(BIN)ruff format .

gpu: $(STAMP) ## the tests that need a GPU; records which CUDA texts ran right, in tests/hardware.json
	$(PYTEST) -m gpu --record-hardware=$(RECORD) tests $(ARGS)

golden: $(STAMP) ## rewrite the snapshots; each changed CUDA text then needs `make gpu`
	$(PYTEST) -m "not gpu" --snapshot-update tests $(ARGS)
	git --no-pager diff --stat -- tests

bench: $(STAMP) ## times beside FlashAttention-3, cuDNN, cuBLAS and others (needs a GPU and torch); JSON lines into out/
	$(PY) -m wgdsl bench --jsonl out/bench.jsonl $(ARGS)

clean: ## remove what the build and the tests left, the virtual environment too
	rm -rf .venv build dist out .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
