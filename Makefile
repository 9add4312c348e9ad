# Each target works on a machine that has Python 3.10 to 3.13, make and a C++17 compiler; the rest comes from PyPI.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
NATIVE := $(wildcard mlirml/runtime/native/*.cpp mlirml/runtime/native/*.h mlirml/runtime/native/*.inc)

.DEFAULT_GOAL := test
.PHONY: demo test test-all driver lint machines other-machine other-python bench accuracy fuzz record replay \
  rehearse-cuda gpu gpu-bundle rehearse-gpu array-api develop constraints clean

demo: $(VENV)/installed
	$(BIN)/python examples/digits.py

# The runs of pytest, and processes that they start, share the bytecode of the tests.
test test-all other-machine other-python rehearse-cuda: export PYTHONDONTWRITEBYTECODE :=

# All tests but those of tests/short_run.py, which test-all has too.
test: SHORT := --short
test test-all: lint driver
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --durations=25 $(SHORT)
	$(MAKE) --no-print-directory other-machine rehearse-cuda SHORT=$(SHORT)

# The part of the tests that looks at the structure of code, and at numbers that depend on it, for another processor
# than this one (its level, the size of its second-level cache, threads).
STRUCTURE := tests/pipelines tests/codegen/cpu tests/targets/test_cpu.py tests/targets/llvm/test_bf16.py tests/test_control_flow.py
OTHER := sse4.1 512K 1
other-machine: $(VENV)/installed
	MLIRML_PROCESSOR=$(word 1,$(OTHER)),l2=$(word 2,$(OTHER)) MLIRML_THREADS=$(word 3,$(OTHER)) \
	  $(BIN)/python -m pytest -n auto --dist loadfile $(SHORT) $(STRUCTURE)

# The part of the tests that depends on the version of CPython: tracing, its frames and lines, threads, garbage collection.
OTHER_PYTHON := python3.13
OF_PYTHON := tests/core tests/driver tests/errors tests/frontend/state tests/frontend/tracing tests/runtime tests/test_api.py
other-python:
	$(MAKE) --no-print-directory VENV=build/other-python PYTHON=$(OTHER_PYTHON) build/other-python/installed
	build/other-python/bin/python -m pytest -n auto --dist loadfile $(SHORT) $(OF_PYTHON)

# All of them; those of AVX-512 where this processor has it.
machines: $(VENV)/installed
	@grep -q avx512vl /proc/cpuinfo || echo "This processor has no AVX-512: the tests of code for it are left out."
	@for level in sse4.1 avx2 $$(grep -q avx512vl /proc/cpuinfo && echo avx512); do for l2 in 512K 1M 2M; do for threads in 1 2; do \
	  echo "$$level, $$l2 of second-level cache, $$threads thread(s)"; \
	  $(MAKE) --no-print-directory other-machine OTHER="$$level $$l2 $$threads" || exit 1; \
	done; done; done

# A Vulkan driver that needs no GPU, and an emulator of AArch64. Where they may not be installed, the tests that need one
# are skipped and say so.
driver:
	@ls /usr/share/vulkan/icd.d /etc/vulkan/icd.d 2> /dev/null | grep -q json \
	  || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && apt-get update -qq \
	       && apt-get install -qq -y --no-install-recommends mesa-vulkan-drivers libvulkan1 > /dev/null; } \
	  || echo "There is no Vulkan driver, and it cannot be installed here: the tests on Vulkan are skipped." \
	       "On Debian: apt-get install mesa-vulkan-drivers libvulkan1"
	@command -v qemu-aarch64 > /dev/null \
	  || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && apt-get update -qq \
	       && apt-get install -qq -y --no-install-recommends qemu-user > /dev/null; } \
	  || echo "There is no qemu-aarch64, and it cannot be installed here: code for AArch64 is compiled and not run." \
	       "On Debian: apt-get install qemu-user"

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.words mlirml docs README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md

bench: $(VENV)/bench
	$(BIN)/python -m benchmarks

accuracy: $(VENV)/bench
	$(BIN)/python -m benchmarks.accuracy

ON_DEVICES := tests/fuzz/test_random_device_programs.py tests/fuzz/test_random_device_networks.py
fuzz: $(VENV)/installed
	MLIRML_FUZZ=20000 $(BIN)/python -m pytest -s tests/fuzz/test_programs.py
	MLIRML_FUZZ=2000 $(BIN)/python -m pytest -s tests/lazy/test_random_programs.py
	MLIRML_FUZZ=10000 $(BIN)/python -m pytest -s tests/fuzz/test_random_loops.py
	MLIRML_FUZZ=1000 $(BIN)/python -m pytest -s tests/fuzz/test_exchanged_arrays.py
	MLIRML_FUZZ=1000 $(BIN)/python -m pytest -s tests/fuzz/test_random_lists.py
	MLIRML_FUZZ=1000 $(BIN)/python -m pytest -s tests/fuzz/test_random_buckets.py
	MLIRML_FUZZ=1000 $(BIN)/python -m pytest -s tests/fuzz/test_shrinking_programs.py
	MLIRML_FUZZ=1000 $(BIN)/python -m pytest -s tests/fuzz/test_matrix_programs.py
	MLIRML_FUZZ=1000 $(BIN)/python -m pytest -s tests/fuzz/test_products.py
	MLIRML_FUZZ=1000 $(BIN)/python -m pytest -s tests/fuzz/test_positions.py
	MLIRML_FUZZ=500 $(BIN)/python -m pytest -s tests/fuzz/test_random_lengths.py
	MLIRML_FUZZ=500 $(BIN)/python -m pytest -s tests/fuzz/test_random_stacks.py
	MLIRML_FUZZ=500 $(BIN)/python -m pytest -s tests/fuzz/test_random_state.py
	MLIRML_FUZZ=300 $(BIN)/python -m pytest -s $(ON_DEVICES)
	MLIRML_FUZZ=300 MLIRML_TILES=off $(BIN)/python -m pytest -s -p tests.targets.rehearsal -m cuda $(ON_DEVICES)
	MLIRML_FUZZ=500 $(BIN)/python -m pytest -s tests/raising/test_counting_loops.py
	MLIRML_FUZZ=2000 $(BIN)/python -m pytest -s tests/autodiff/test_random.py
	MLIRML_FUZZ=500 $(BIN)/python -m pytest -s tests/autodiff/test_random_loops.py
	MLIRML_FUZZ=2000 $(BIN)/python -m pytest -s tests/fuzz/test_mutated_modules.py
	MLIRML_FUZZ=600 $(BIN)/python -m pytest -s tests/pipelines/test_selection.py
	MLIRML_FUZZ=20 $(BIN)/python -m pytest -s tests/tuning/test_schedule_space.py
	MLIRML_FUZZ=1 $(BIN)/python -m pytest -s tests/targets/test_processors.py

# The public suite of the array API standard, a checkout of github.com/data-apis/array-api-tests with its submodule.
array-api: $(VENV)/installed
	@test -d "$(ARRAY_API_TESTS)" || { echo "ARRAY_API_TESTS=FOLDER names a checkout of array-api-tests"; exit 1; }
	$(PIP) install --quiet ndindex pytest-json-report
	cd "$(ARRAY_API_TESTS)" && ARRAY_API_TESTS_MODULE=mlirml.numpy ARRAY_API_TESTS_VERSION=2024.12 \
	  $(abspath $(BIN))/python -m pytest array_api_tests -q --max-examples 20 --derandomize -p no:cacheprovider

# What every stage makes of some 360 programs: `make record` before a change, `make replay` after it.
RECORD ?= build/replay.zip
record: $(VENV)/installed
	@mkdir -p $(dir $(RECORD))
	$(BIN)/python -m tests.replay record $(RECORD)
replay: $(VENV)/installed
	$(BIN)/python -m tests.replay compare $(RECORD)

# What `pytest -m cuda` does on an NVIDIA GPU, without one: kernels are executed in NumPy, those of threads from their
# PTX, and those of tiles from their text.
TILED := tests/targets/test_device_tiles.py tests/targets/test_device_products.py tests/fuzz/test_random_device_networks.py
rehearse-cuda: $(VENV)/installed
	MLIRML_TILES=off $(BIN)/python -m pytest -p tests.targets.rehearsal -m cuda -n auto $(SHORT)
	MLIRML_TILES=sm_90 $(BIN)/python -m pytest -p tests.targets.rehearsal -m cuda -n auto $(SHORT) $(TILED)

# All that a GPU of NVIDIA can tell in eight minutes, with no network: it uses the Python of the machine, as PYTHON names
# it, and the archive that `make gpu-bundle` has made elsewhere.
gpu:
	$(PYTHON) benchmarks/gpu.py

gpu-bundle: $(VENV)/installed
	$(BIN)/python benchmarks/gpu_bundle.py

rehearse-gpu: $(VENV)/installed
	$(BIN)/python benchmarks/gpu.py --rehearse --out build/gpu/rehearsal

# Rebuilds the native runtime after a change; everything else in the package is used from the tree as it is.
develop: $(VENV)/installed

$(VENV)/created:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 10) <= v < (3, 14) else "mlirml needs Python 3.10 to 3.13, and $(PYTHON) is %d.%d: set PYTHON=" % v)'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/requirements: $(VENV)/created pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt scikit-build-core nanobind numpy cmake ninja
	touch $@

$(VENV)/installed: $(VENV)/requirements CMakeLists.txt $(NATIVE)
	$(PIP) install --quiet --constraint constraints.txt --no-build-isolation --editable '.[test]'
	$(BIN)/python -m compileall -q mlirml
	touch $@

# Without the versions of NVIDIA's libraries: torch names its own, and of ours the tests need the assembler only.
$(VENV)/bench: $(VENV)/installed
	grep -v '^nvidia' constraints.txt > $(VENV)/peers.txt
	$(PIP) install --quiet --constraint $(VENV)/peers.txt --no-build-isolation --editable '.[bench]'
	touch $@

# Needs uv, which is no part of the other targets.
constraints:
	(head -1 constraints.txt; uv pip compile pyproject.toml --extra test --extra build --universal --python-version 3.10 \
	  --no-annotate --no-header --quiet | sed -e "/sys_platform == 'win32'/d" -e "s/ ; platform_python_implementation.*//") \
	  > constraints.new
	mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis mlirml/runtime/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
