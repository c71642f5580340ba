# Everything a clone needs: `make demo` runs a real comparison, `make test` checks the whole project.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
ENGINE_SOURCES := $(shell find engine -name target -prune -o -type f \( -path '*/src/*' -o -name 'Cargo.*' \) -print)
LAB_SOURCES := $(shell find lab -type f -not -path '*/__pycache__/*') pyproject.toml

.PHONY: build demo test test-engine test-lab lint bench clean

build: $(VENV)/.built

# The tools of the build come from the constraints too: no isolated environment with versions of its own.
$(VENV)/.tools: constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pgtrial needs Python 3.11 or later; say make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt pip setuptools setuptools-rust
	touch $@

$(VENV)/.built: $(VENV)/.tools $(ENGINE_SOURCES) $(LAB_SOURCES) README.md LICENSE
	$(PIP) install --quiet --no-build-isolation --constraint constraints.txt .
	touch $@

# The servers and tools that only the tests need.
$(VENV)/.dev: $(VENV)/.built
	$(PIP) install --quiet --no-build-isolation --constraint constraints.txt '.[pg16,pg17,ray,dev]'
	touch $@

demo: build
	$(BIN)/pgtrial demo

test: lint test-engine test-lab

test-engine:
	cd engine && cargo test --locked --quiet

test-lab: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --no-loadscope-reorder

lint: $(VENV)/.dev
	cd engine && cargo fmt --check && cargo clippy --locked --all-targets --quiet -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=lab $(BIN)/lint-imports --no-logo

bench: $(VENV)/.dev
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) build engine/target *.egg-info lab/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
