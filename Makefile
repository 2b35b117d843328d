# The commands of this project; CONTRIBUTING.md explains them. Everything is quick the second time.
#   make demo    set up, build and run the main example
#   make test    set up, build and run all tests
#   make test-pythons  build the Python module for this machine's other interpreters, and test it (PYTHONS=... names them)
#   make test-breaks   the long test of capture: a break at each instruction, and CPython's own tests compiled
#   make bench   run the benchmarks (NAMES=... some), beside PyTorch where there is one (make peer, or PEER_PYTHON=...)
#   make peer    install PyTorch in .peer, for make bench
#   make check   formatting and layering; make format formats
# FLAMBEAU_BUILD_DIR=... chooses the build folder.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := demo
.PHONY: demo test bench peer check format clean build setup configure test-cpp test-python test-pythons test-breaks

BUILD := $(or $(FLAMBEAU_BUILD_DIR),build)
PYTHON_ENV := .venv/bin/python
HAVE_GPU := $(shell nvidia-smi -L 2> /dev/null | grep -c '^GPU')
PEER := $(or $(PEER_PYTHON),$(wildcard .peer/bin/python))

demo: configure
	@cmake --build $(BUILD) --target digits
	@$(BUILD)/examples/digits/digits
	@if [ -e $(BUILD)/python/flambeau ]; then \
	  cmake --build $(BUILD) --target _C && \
	  PYTHONPATH=$(BUILD)/python $(PYTHON_ENV) examples/digits/digits.py --plot $(BUILD)/digits.png; \
	fi

test: test-cpp test-python

# Several test programs run at once, so that their idle threads must not spin.
test-cpp: build
ifeq ($(HAVE_GPU),0)
	@echo "test: NO GPU HERE: the tests with the label gpu are NOT RUN"
	@OMP_WAIT_POLICY=passive ctest --test-dir $(BUILD) -j $$(nproc) --output-on-failure --progress -LE '^gpu$$'
else
	@OMP_WAIT_POLICY=passive ctest --test-dir $(BUILD) -j $$(nproc) --output-on-failure --progress
endif

# The module is built as $(BUILD)/python/flambeau/.
test-python: test-cpp
	@if compgen -G "$(BUILD)/python/flambeau/*.so" > /dev/null && [ -d tests/python ]; then \
	  PYTHONPATH=$(BUILD)/python $(PYTHON_ENV) -m pytest -q tests/python; \
	  if [ $(HAVE_GPU) = 0 ] && [ -e $(BUILD)/tests/libfake_cuda_driver.so ]; then \
	    echo "test: CUDA without a GPU: a stand-in for the driver interprets the kernels"; \
	    FLAMBEAU_CUDA_DRIVER=$(BUILD)/tests/libfake_cuda_driver.so PYTHONPATH=$(BUILD)/python $(PYTHON_ENV) \
	      -m pytest -q tests/python/cuda; \
	  fi; \
	else \
	  echo "test: the Python module is not built: tests/python is not run"; \
	fi

test-pythons: build
	@$(PYTHON_ENV) tools/test_pythons.py $(BUILD) $(PYTHONS)

test-breaks: build
	@FLAMBEAU_BREAKS=1 FLAMBEAU_CPYTHON_TESTS=all PYTHONPATH=$(BUILD)/python $(PYTHON_ENV) -m pytest -q \
	  tests/python/capture/test_break_everywhere.py

bench: configure
	@cmake --build $(BUILD)
	@$(PYTHON_ENV) tools/bench_table.py --build $(BUILD) $(if $(PEER),--peer $(PEER)) $(NAMES)

peer:
	@tools/setup.sh .peer tools/requirements-peer.txt

check: setup
	@$(PYTHON_ENV) tools/check_layers.py
	@$(PYTHON_ENV) tools/check_format.py

format: setup
	@$(PYTHON_ENV) tools/check_format.py --fix

build: configure
	@cmake --build $(BUILD)

configure: setup
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release -B $(BUILD)

setup:
	@tools/setup.sh

clean:
	rm -rf $(BUILD) build-debug build-asan build-tsan
