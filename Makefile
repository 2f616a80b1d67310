# `make run` and `make test` need Python 3.11 or newer, and nothing else that they do not install themselves.
# PYTHON=/path/to/python3 chooses another Python, ARGS="…" passes options on to pytest.

VENV := .venv
BIN := $(VENV)/bin
DEMO_ENGINE := .demo/shoal.db
# Three processes keep two cores busy: tests wait for much of their time. Files stay whole, and in the order of conftest.py.
SPREAD := -n 3 --dist loadfile --no-loadscope-reorder
COMPILE := $(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
  --no-config --quiet --upgrade --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.PHONY: help run test proof chaos check bench docs lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-6s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.ready ## crawl the bundled demo shop with examples/books.py; the items go to books.jsonl
	@rm -f $(DEMO_ENGINE) $(DEMO_ENGINE)-wal $(DEMO_ENGINE)-shm && mkdir -p .demo
	@$(BIN)/python -m shoal.demo --port 8808 -- \
	  $(BIN)/shoal run examples/books.py --engine sqlite:///$(DEMO_ENGINE) -o books.jsonl --replace

test: $(VENV)/.ready-dev ## run the tests (installs the servers that they start for themselves)
	@scripts/servers
	$(BIN)/pytest $(SPREAD) $(ARGS)

proof: $(VENV)/.ready-dev ## prove at length: the tests that take minutes, then `make chaos`; about an hour
	@scripts/servers
	$(BIN)/pytest $(SPREAD) -m proof
	$(MAKE) chaos ARGS="--minutes 3"

chaos: $(VENV)/.ready-dev ## hurt fleets on every engine and prove that they kept the rules (ARGS="--help" for more)
	@scripts/servers
	PYTHONPATH=tests $(BIN)/python -m proof.chaos $(ARGS)

check: $(VENV)/.ready-dev ## lint, format, types, import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/.ready-dev ## measure; takes many minutes (see benchmarks/README.md)
	$(BIN)/python benchmarks/crawl.py
	$(BIN)/python benchmarks/frontier.py
	$(BIN)/python benchmarks/politeness.py
	$(BIN)/python benchmarks/gateway.py

docs: $(VENV)/.ready-dev ## write the reference pages from the code, and check all links
	$(BIN)/python scripts/settings_and_cli_reference.py docs/reference
	$(BIN)/python scripts/python_reference.py docs/reference/python.md
	$(BIN)/python scripts/log_reference.py docs/reference/log-events.md
	$(BIN)/pytest tests/docs -k "reference or link"

lock: $(VENV)/.ready-dev ## renew both lock files with the newest versions that fit
	$(COMPILE) --group build --output-file requirements.lock
	$(COMPILE) --group build --group dev --constraints requirements.lock --output-file requirements-dev.lock

clean: ## delete what the other commands made, .venv included
	rm -rf $(VENV) .demo .bench dist books.jsonl .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.ready: requirements.lock pyproject.toml
	@PYTHON="$(PYTHON)" scripts/environment $(VENV) requirements.lock
	@touch $@

$(VENV)/.ready-dev: requirements-dev.lock requirements.lock pyproject.toml
	@PYTHON="$(PYTHON)" scripts/environment $(VENV) requirements-dev.lock
	@touch $(VENV)/.ready $@
