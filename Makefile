# Countersign: the commands of a checkout. `make help` lists them.
# Everything is installed into .venv from the hash-pinned lock files; paths may hold spaces.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help run test check bench chaos mutants drawings format lock clean

PY := .venv/bin/python
# For commands that only read the code: settings that name no server.
CHECK_ENV := env COUNTERSIGN_DEMO=0 COUNTERSIGN_SECURE_COOKIES=1 HOST=0.0.0.0 \
	COUNTERSIGN_ALLOWED_HOSTS=countersign.example COUNTERSIGN_HOME=.countersign/check \
	COUNTERSIGN_SECRET_KEY=only-for-make-check-5d1f0c7a9b3e48628f14ad07c2b6e95d83f1 \
	DATABASE_URL=postgresql://nobody@127.0.0.1:1/none REDIS_URL=redis://127.0.0.1:1/0 \
	DJANGO_SETTINGS_MODULE=reviewer.config.settings LANGGRAPH_STRICT_MSGPACK=true
UV ?= uv
# The first Python that fits installs. `make PYTHONS=/path/to/python run` names another.
PYTHONS ?= python3.13 python3.12 python3.11 python3
INSTALL = fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))'; found=; \
	for python in $(PYTHONS); do \
		"$$python" -c "$$fits" 2>/dev/null || continue; found=$$python; \
		"$$python" -c 'import ensurepip, venv' 2>/dev/null && exec "$$python" reviewer/launch/install.py "$$@"; \
	done; \
	if [ -n "$$found" ]; then echo "countersign: $$found has no venv module; install it (Debian: apt install $$found-venv)." >&2; \
	else echo "countersign: Python 3.11, 3.12 or 3.13 is needed, and none of $(PYTHONS) is one." >&2; fi; exit 1
PYTEST_ARGS ?=

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

run: .venv/run.stamp ## start everything: databases, worker, scheduler, web
	@exec $(PY) -m reviewer.launch run

test: .venv/dev.stamp ## run the tests (PYTEST_ARGS="-k word" for some of them)
	@$(PY) -m pytest --numprocesses 2 --dist loadfile $(PYTEST_ARGS)

check: .venv/dev.stamp ## format, lint, types, contracts, templates, migrations, deployment
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(CHECK_ENV) $(PY) -m mypy
	.venv/bin/lint-imports --no-logo
	$(PY) -m djlint --lint --quiet templates
	$(CHECK_ENV) $(PY) -m reviewer.launch scratch -- $(PY) manage.py makemigrations --check --dry-run
	$(CHECK_ENV) $(PY) manage.py check --deploy --fail-level WARNING

bench: .venv/dev.stamp ## measure how fast it is (ONLY="runtime click" for some of it)
	@$(PY) -m tests.bench $(ONLY)

# SEED=7 PARTS=deaths POINTS=…: one schedule again, as the report names it. EACH=3: a shorter run. RESUME=1: go on.
chaos: .venv/dev.stamp ## kill processes and servers at every failpoint, 20 times each (EACH=3: a shorter run)
	@$(PY) -m tests.chaos $(or $(PARTS),deaths crowds product) $(if $(SEED)$(SEEDS),\
		$(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(POINTS),--points $(POINTS)),\
		--at-once $(if $(EACH),--each $(EACH)) $(if $(RESUME),--resume))

mutants: .venv/dev.stamp ## take one guard after another out of a copy, and see that its tests fail
	@$(PY) -m tests.chaos.mutants

drawings: .venv/dev.stamp ## after a change of how cards look: raise the renderer's version, record the drawings
	@$(CHECK_ENV) $(PY) manage.py shell --no-imports -c "from tests.cards import renderer; renderer.record()"

format: .venv/dev.stamp ## bring the code into its form
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

lock: ## renew the lock files (needs uv)
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
		pyproject.toml --output-file requirements.lock
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		--constraint requirements.lock --group dev pyproject.toml --output-file requirements-dev.lock

clean: ## remove .venv and caches; keeps .countersign, the data
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# A stamp is older than its lock file when there is something to install.
.venv/run.stamp: requirements.lock
	@set -- $< $@; $(INSTALL)

.venv/dev.stamp: requirements-dev.lock
	@set -- $< $@; $(INSTALL)
	@touch .venv/run.stamp
