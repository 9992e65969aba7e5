# Everything a contributor runs. Each target sets up what it needs; only git, make and Python 3.11+ are assumed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test test-live test-contract test-scale chaos check fix bench image clean

help: ## show this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(READY) ## make the virtual environment

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable . --group dev
	@touch $@

demo: $(READY) ## carry a dozen incidents through the whole daemon, on this machine
	@$(BIN)/rootcaused demo $(ARGS)

test: $(READY) ## the default suite: no root, no system packages, under two minutes
	$(BIN)/python -m pytest -n 2 -m "not live and not chaos and not contract and not scale" --dist worksteal $(ARGS)

test-live: $(READY) ## the suite against real servers; installs Debian's prometheus and prometheus-alertmanager
	./tests/live/install-servers
	$(BIN)/python -m pytest -m live tests/live --timeout 240 $(ARGS)

test-contract: $(READY) ## our requests against the Prism mock server (npm) over the vendors' specs
	@command -v npm >/dev/null || { echo "test-contract needs npm"; exit 1; }
	@[ -x .prism/node_modules/.bin/prism ] || { mkdir -p .prism && cp tests/contract/package.json .prism/ && npm install --prefix .prism --no-audit --no-fund --no-package-lock --silent; }
	PRISM=$(CURDIR)/.prism/node_modules/.bin/prism $(BIN)/python -m pytest -m contract tests/contract --timeout 240 $(ARGS)

test-scale: $(READY) ## tens of thousands of tickets polled whole, memory flat
	$(BIN)/python -m pytest -m scale tests/sources --durations=0 $(ARGS)

chaos: $(READY) ## kill workers and flush Redis in mid-run; N=1 is the short form
	$(BIN)/python -m pytest -m chaos tests/chaos --timeout 240 $(ARGS)

check: $(READY) ## lint, format, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: $(READY) ## what the linter and formatter can mend by themselves
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY) ## figures of speed and size
	$(BIN)/python tests/bench/run.py $(ARGS)

image: ## build the container image
	docker build --file deploy/Dockerfile --tag rootcaused:dev .

clean: ## remove what the targets above made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
