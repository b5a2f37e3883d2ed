# `make up` runs the sidecar, `make test` proves the tree; both first install what is missing.
# A stamp in each environment carries a hash of what it was made from, so nothing is done twice
# and a changed lock is never missed.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.NOTPARALLEL:

# A pyenv shim on PATH may stand for a version that is not chosen, so a candidate has to run.
PYENV := $(or $(PYENV_ROOT),$(HOME)/.pyenv)
find = $(shell for p in python$(1) $(PYENV)/versions/$(1).*/bin/python; do \
  "$$p" -c '' 2>/dev/null && { echo "$$p"; break; }; done)
PYTHONS = $(foreach version,3.11 3.12 3.13,$(call find,$(version)))
# The oldest first: what runs there runs on the newer ones.
PYTHON ?= $(firstword $(PYTHONS))
# The real vLLM for the CPU needs a torch that exists for this Python only.
PARTS_PYTHON ?= $(call find,3.11)
VENV ?= .venv

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 2
export PIP_ROOT_USER_ACTION := ignore
hash = $(shell cat $(1) | sha256sum | cut -c1-12)
RUNTIME := $(VENV)/.runtime-$(call hash,requirements/runtime.txt pyproject.toml)
DEV := $(VENV)/.dev-$(call hash,requirements/dev.txt pyproject.toml)
VLLM := .parts/vllm/.ready-$(call hash,requirements/vllm.txt)
LITELLM := .parts/litellm/.ready-$(call hash,requirements/litellm.txt)

# What the tests start or compile with, and the library that vLLM's CPU kernels load; the Debian
# packages that have it all.
COMMANDS := promtool amtool vmalert prometheus-pushgateway chromium gcc
LIBRARY := libnuma.so.1
PACKAGES := prometheus prometheus-alertmanager victoria-metrics prometheus-pushgateway chromium gcc libc6-dev libnuma1

.PHONY: help up test lint types unit quick e2e others parts bench docs rules lock system

help: ## this list
	@sed -nE 's/^([a-z0-9]+):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

up: $(RUNTIME) ## run the sidecar beside the engines of this machine; ARGS="…" are passed on
	@$(VENV)/bin/inferslo up $(ARGS)

test: system $(DEV) parts lint types ## everything that CI proves on one Python
	@$(VENV)/bin/coverage run -m pytest $(ARGS)
	@$(VENV)/bin/coverage report

lint: $(DEV) ## ruff, code and format
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/ruff format --check

types: $(DEV) ## mypy on the product, pyright on what uses it
	@$(VENV)/bin/mypy
	@$(VENV)/bin/pyright

unit: system $(DEV) ## the tests that start no real engine
	@$(VENV)/bin/pytest -m "not e2e" $(ARGS)

quick: system $(DEV) ## the unit tests of which Python, not promtool or a browser, does the work
	@$(VENV)/bin/pytest -m "not e2e and not promtool and not browser" $(ARGS)

e2e: system $(DEV) parts ## the tests against a real vLLM, LiteLLM and Prometheus
	@$(VENV)/bin/pytest -m e2e $(ARGS)

others: ## quick tests on every other supported Python of this machine
	@echo "supported Pythons found: $(PYTHONS)"
	@for python in $(filter-out $(PYTHON),$(PYTHONS)); do \
	  version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  echo "quick tests on Python $$version"; \
	  $(MAKE) quick PYTHON="$$python" VENV=".venv-$$version"; \
	done

parts: $(VLLM) $(LITELLM) ## the real vLLM (CPU) and LiteLLM that the tests watch, in .parts/

# Two are run by hand: one needs a vLLM that nobody else uses, one a GPU.
BENCHES = $(filter-out bench/aborted.py bench/gpu_check.py,$(wildcard bench/*.py))
bench: system $(DEV) ## print what things cost, some 15 minutes; BENCHES=bench/events.py for one
	@for file in $(BENCHES); do echo "$$file"; $(VENV)/bin/python $$file $(ARGS); done

docs: $(DEV) ## write the generated pages of docs/
	@$(VENV)/bin/python docs/generate.py

rules: $(RUNTIME) ## write the rules of the chat catalogue file, rules/generated/
	@$(VENV)/bin/inferslo build slo/catalogue/chat.yaml --out rules/generated

# --- environments ----------------------------------------------------------------------------

# $(call venv,FOLDER,PYTHON): a virtual environment, unless it is there.
venv = @test -x $(1)/bin/python || { \
  test -n "$(2)" || { echo "no $(3) here: install it (Debian: apt-get install python3 python3-venv)" \
    "or name it: make PYTHON=/path/to/python" >&2; exit 2; }; \
  echo "making $(1) with $(2)"; "$(2)" -m venv $(1); }

$(RUNTIME):
	$(call venv,$(VENV),$(PYTHON),Python 3.11 to 3.13)
	@echo "installing inferslo into $(VENV) (some 10 s)"
	@$(VENV)/bin/pip install --require-hashes -r requirements/runtime.txt
	@$(VENV)/bin/pip install --no-deps --editable .
	@rm -f $(VENV)/.runtime-*; touch $@

$(DEV):
	$(call venv,$(VENV),$(PYTHON),Python 3.11 to 3.13)
	@echo "installing inferslo and its test tools into $(VENV) (some 20 s)"
	@$(VENV)/bin/pip install --require-hashes -r requirements/dev.txt
	@$(VENV)/bin/pip install --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/.dev-*; touch $@

$(VLLM):
	$(call venv,.parts/vllm,$(PARTS_PYTHON),Python 3.11)
	@echo "installing the real vLLM for the CPU into .parts/vllm (some minutes, 3 GB)"
	@.parts/vllm/bin/pip install --no-deps -r requirements/vllm.txt
	@.parts/vllm/bin/python -c 'import torch' || { echo "this torch is no CPU build, which vLLM needs:" \
	  "make parts PIP_FIND_LINKS=FOLDER_OR_PAGE_WITH_ONE" >&2; exit 2; }
	@rm -f .parts/vllm/.ready-*; touch $@

$(LITELLM):
	$(call venv,.parts/litellm,$(PARTS_PYTHON),Python 3.11)
	@echo "installing the real LiteLLM into .parts/litellm (about a minute)"
	@.parts/litellm/bin/pip install --require-hashes -r requirements/litellm.txt
	@rm -f .parts/litellm/.ready-*; touch $@

system:
	@missing=""; \
	for command in $(COMMANDS); do command -v $$command >/dev/null || missing+=" $$command"; done; \
	python() { "$(or $(PYTHON),false)" -c "$$1" 2>/dev/null; }; \
	python 'import ensurepip' || missing+=" python3-venv"; \
	python 'import ctypes; ctypes.CDLL("$(LIBRARY)")' || missing+=" $(LIBRARY)"; \
	test -n "$$missing" || exit 0; \
	install="apt-get install --no-install-recommends -y $(PACKAGES) python3-venv"; \
	if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
	  echo "missing:$$missing; installing Debian packages (about a minute)"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$install -qq >/dev/null; \
	else \
	  echo "missing:$$missing. As root, on Debian or Ubuntu: $$install" >&2; exit 2; \
	fi

lock: ## bring the locks up to pyproject.toml; ARGS=--upgrade takes newer releases
	@test -x .parts/uv/bin/uv || { python3 -m venv .parts/uv && .parts/uv/bin/pip install uv; }
	@lock() { out=$$1; shift; echo "locking requirements/$$out"; \
	  .parts/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --custom-compile-command "make lock" -o requirements/$$out "$$@" $(ARGS); }; \
	lock runtime.txt pyproject.toml; \
	lock dev.txt pyproject.toml --group dev -c requirements/runtime.txt; \
	lock litellm.txt --group litellm
