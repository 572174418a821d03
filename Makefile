# Everything a newcomer or CI runs. Needs Python >= 3.11, Rust, a C compiler and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SCALE ?= 20
GRAPH ?=
WHEEL ?=
TRAIN ?= 1
FUZZ_SECONDS ?= 120
CRASH_ROUNDS ?= 28
MIRI_SEEDS ?= 32
WORKERS ?= $(shell cores=$$(nproc 2> /dev/null || echo 2); echo $$((cores < 4 ? cores : 4)))
PART ?=
PYTHONS ?=
DEMO_DIR ?= demo.tg

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.cu' -o -name '*.cuh' -o -name Cargo.toml -o -name '*.lock') Cargo.toml Cargo.lock

.DEFAULT_GOAL := help
.PHONY: help demo test check docs bench gpu-test nvme-test miri wheels mutants

help: ## List these targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

demo: $(VENV)/native $(if $(filter 1,$(TRAIN)),$(VENV)/training) ## Build a graph, run four algorithms in a quarter of its memory, and train (GRAPH=file for your own edges; TRAIN=0 spares the gigabytes of PyTorch)
	$(BIN)/tiergraph demo --scale $(SCALE) --directory $(DEMO_DIR) $(if $(GRAPH),--graph '$(GRAPH)') $(if $(filter 1,$(TRAIN)),,--no-training)

test: $(VENV)/native $(VENV)/training ## All Rust and Python tests, those of training included; random calls; jobs that are killed
	cargo test --release --workspace --locked
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
	$(BIN)/python -m tools.fuzz --seconds $(FUZZ_SECONDS)
	$(BIN)/python -m tools.crash --rounds $(CRASH_ROUNDS)

check: $(VENV)/tools ## Format, lints, types, layers, results, and every CUDA kernel compiled (no GPU needed)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff format --check python tools
	$(BIN)/ruff check python tools
	$(BIN)/mypy
	$(BIN)/python tools/check_layers.py
	$(BIN)/python tools/check_folders.py
	$(BIN)/python bench/results --check
	$(BIN)/python tools/compile_kernels.py

docs: $(VENV)/native ## The documentation's site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "site: $(abspath site)/index.html"

GPU_TESTS := $(addprefix python/tests/test_gpu,.py _bench.py _loader.py _propagate.py _trace.py _direct.py _faults.py _direct_faults.py _green.py)

# Needs neither Rust nor a virtual environment: a bare CUDA machine with Python, PyTorch, PyG, pytest.
gpu-test: ## The GPU's tests on a CUDA machine, with a wheel built elsewhere (WHEEL=dist/tiergraph-….whl)
	test -n "$(WHEEL)" || { echo "make: error: name the wheel: make gpu-test WHEEL=dist/tiergraph-….whl" >&2; exit 1; }
	$(PYTHON) -m pip install --quiet --no-deps --upgrade --target .gpu-site '$(WHEEL)'
	PYTHONPATH=.gpu-site $(PYTHON) -m pytest -p no:cacheprovider $(GPU_TESTS)
	PYTHONPATH=.gpu-site TIERGRAPH_TEST_DEVICE=cuda $(PYTHON) -m pytest -p no:cacheprovider python/tests/test_conformance.py

nvme-test: $(VENV)/native ## Reading NVMe drives by queue pairs and by passthrough, with two of them in an emulated machine (skipped, with the reason, where there is no QEMU)
	suite=$$($(BIN)/python -m tools.qemu.suite) && \
	$(BIN)/python -m tools.qemu -- python -m tools.qemu.drive_checks "$$suite" || [ $$? = 77 ]

miri: ## Both sides of NVMe queue pairs in many interleavings, under Miri (skipped, with the reason, where there is no nightly Rust with it)
	@if ! said=$$(cargo +nightly miri setup 2>&1); then \
	    echo "skipped: no Miri here (rustup toolchain install nightly --component miri --component rust-src): $$(echo "$$said" | tail -n 1)"; \
	else \
	    MIRIFLAGS='-Zmiri-disable-isolation -Zmiri-many-seeds=0..$(MIRI_SEEDS)' \
	        cargo +nightly miri test --locked --target-dir target/miri-tests -p tiergraph-nvme --test interleavings; \
	fi

bench: $(VENV)/native ## What this machine's drive gives each read engine, on the demo's graph, and the one paper's figure that needs no GPU
	test -d $(DEMO_DIR) || $(BIN)/tiergraph generate rmat $(DEMO_DIR) --scale $(SCALE)
	$(BIN)/tiergraph bench io $(DEMO_DIR)
	$(BIN)/python bench/paper/realgraph_user_space.py --scale $(SCALE) --threads 1

wheels: $(VENV)/tools ## Wheels for x86-64 and aarch64 and a source distribution, in dist/, accepted by auditwheel and tried (PYTHONS="python3.11 python3.13" for more than one; minutes; needs rustup)
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["wheels"], sep="\n")' > $(VENV)/wheels.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement $(VENV)/wheels.txt
	$(BIN)/python -m tools.wheels $(if $(PYTHONS),--python $(PYTHONS))

mutants: ## How many small faults in the code that reads and keeps are caught by its crates' tests (hours; PART=cache for one part; needs cargo-mutants)
	$(PYTHON) tools/mutants.py $(PART)

# Stamps: each holds until what it is made from changes.

$(VENV)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "make: error: Python 3.11 or newer is needed, got " + sys.version.split()[0] + "; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	touch $@

# Reads the dependencies from pyproject.toml, so that they are listed once.
$(VENV)/tools: $(VENV)/python pyproject.toml
	$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; e = p["optional-dependencies"]; print(*p["dependencies"], *e["parquet"], *e["report"], *e["docs"], *e["dev"], sep="\n")' > $(VENV)/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement $(VENV)/requirements.txt
	touch $@

$(VENV)/training: $(VENV)/tools
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["train"], sep="\n")' > $(VENV)/training.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement $(VENV)/training.txt
	touch $@

$(VENV)/native: $(VENV)/tools $(RUST_SOURCES)
	VIRTUAL_ENV='$(abspath $(VENV))' $(BIN)/maturin develop --release --locked
	touch $@
