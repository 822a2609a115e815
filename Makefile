# Everything runs in .venv and writes to build/; `make help` lists the targets.

PYTHON ?= python3
PRESET ?=
SEEDS  ?= 20
UNIT   ?=
BENCH  ?= tests/rtl/stream

VENV := .venv
RUN  := $(VENV)/bin/python

# Caches of pip, Yosys, matplotlib and the compiler stay inside the project.
export XDG_CACHE_HOME := $(CURDIR)/build/cache
export XDG_CONFIG_HOME := $(CURDIR)/build/config
export HYPOTHESIS_STORAGE_DIRECTORY := $(CURDIR)/build/hypothesis
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test regress verilog bench synth formal lint wave clean distclean tools

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/stamp-test ## run the attention unit on real data and write an HTML report
	$(RUN) -m sim.demo

test: $(VENV)/stamp-test ## run the tests
	$(RUN) -m pytest -n 2 -m "not regress"

regress: $(VENV)/stamp-test ## run the tests with the slow ones, then the benches with SEEDS more seeds
	$(RUN) -m pytest -n 2
	for seed in $$(seq 2 $$(( $(SEEDS) + 1 ))); do \
		KVS_SEED=$$seed $(RUN) -m pytest -n 2 -q tests/rtl || exit 1; \
	done

verilog: $(VENV)/stamp-test ## write build/rtl/<preset>/<unit>.v and .json [PRESET=...] [UNIT=...]
	$(RUN) -m hw.emit $(PRESET:%=--preset %) $(UNIT:%=--unit %) --out build/rtl

bench: $(VENV)/stamp-test ## measure cycles, traffic and errors into build/bench
	$(RUN) -m sim.bench

synth: $(VENV)/stamp-test $(VENV)/stamp-synth ## synthesize, place and route for an ECP5 FPGA
	$(RUN) -m sim.synth $(PRESET:%=--preset %)

formal: $(VENV)/stamp-test $(VENV)/stamp-formal ## prove the properties in tests/formal
	$(RUN) -m pytest tests/formal

lint: $(VENV)/stamp-test $(VENV)/stamp-lint ## check style, types and the generated Verilog
	$(VENV)/bin/ruff check .
	$(VENV)/bin/pyright
	$(RUN) -m pytest -q tests/rtl/test_verilog.py

wave: $(VENV)/stamp-test ## run the tests of BENCH=<path> and leave a waveform of each
	$(RUN) -m pytest --waves -s $(BENCH)

clean: ## remove what was built, but not the environment
	rm -rf build .pytest_cache .ruff_cache .hypothesis *.egg-info

distclean: clean ## remove the environment too
	rm -rf $(VENV)

# A missing tool is one line that names the Debian package.
tools:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: apt-get install python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or later needed: apt-get install python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "Python's venv not found: apt-get install python3-venv"; exit 1; }
	@command -v g++ >/dev/null || { echo "g++ not found: apt-get install g++"; exit 1; }
	@command -v perl >/dev/null || { echo "perl not found: apt-get install perl"; exit 1; }

# The lock files are complete, so nothing is resolved; a stamp is renewed when its lock changes.
$(VENV)/stamp-test: requirements.lock pyproject.toml | tools
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install -q --no-deps -r requirements.lock
	$(RUN) -m pip install -q --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/stamp-%: requirements-%.lock $(VENV)/stamp-test
	$(RUN) -m pip install -q --no-deps -r $<
	touch $@
