# The commands of the project. `make train` and `make test` set up all that they need: .venv, the packages that
# pyproject.toml names, the compiled module. CMakeLists.txt builds it; CONTRIBUTING.md says how to work here.
#
#   make PYTHON=python3.12 ...   another interpreter; .venv keeps it until you name a third
#   make CMAKE_FLAGS=-DNEEDLE_CUDA_EMULATION=OFF ...   options of CMakeLists.txt, for a build folder's first time
#   make train ARGS="--help"     options for the program behind train, train-lm, test, bench ...

PYTHON ?= python3
BIN := .venv/bin

# Nothing from outside .venv may take the place of what is here; Ninja and the tests are no children of this make.
unexport PYTHONPATH PYTHONHOME MAKEFLAGS

.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
.PHONY: setup build train train-cifar10 train-lm fit-sine test test-torch bench stages walk mutants \
	lint format types layers gates check sanitize clean

# --- set-up ---------------------------------------------------------------------------------------------------------

# .venv/made-from names the interpreter and the folder of .venv. Where they are no longer true, .venv is made anew.
# The interpreter in .venv stays unless it is gone or PYTHON names another.
asked := $(if $(filter file default,$(origin PYTHON)),$(BIN)/python,$(PYTHON))
identity := import sys; print(sys.version.split()[0] + sys.abiflags, sys.base_prefix)
made_from := $(shell $(asked) -c '$(identity)' 2>/dev/null) in $(CURDIR)
ifneq "$(made_from)" "$(shell cat .venv/made-from 2>/dev/null)"
.PHONY: .venv/made-from
endif

header := import os, sysconfig; print(os.path.join(sysconfig.get_path("include"), "Python.h"))
or_say = || { echo "needle needs $(1)" >&2; exit 1; }

.venv/made-from:
	@command -v $(PYTHON) >/dev/null \
		$(call or_say,Python 3.10 or later; there is no $(PYTHON): apt install python3)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		$(call or_say,Python 3.10 or later; $(PYTHON) is older: choose another with make PYTHON=python3.12)
	@command -v $${CXX:-c++} >/dev/null $(call or_say,a C++ compiler: apt install g++)
	@test -e "$$($(PYTHON) -c '$(header)')" \
		$(call or_say,the C headers of $(PYTHON): apt install python3-dev)
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		$(call or_say,the venv module of $(PYTHON): apt install python3-venv)
	$(PYTHON) -m venv --clear .venv
	@echo "$$($(BIN)/python -c '$(identity)') in $(CURDIR)" > $@

# The module is built below, by Ninja; here pip only fetches what the package needs and links it: by a path, for the
# import hook that pip leaves would hide the needle of a stage's tree, which comes by PYTHONPATH.
.venv/installed: pyproject.toml .venv/made-from
	@echo "fetching packages into .venv (once, a minute at most)"
	@SKBUILD_WHEEL_CMAKE=0 SKBUILD_EDITABLE_MODE=inplace \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[train,dev]'
	@cd "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" && \
		rm -f _editable*needle* _needle_editable* && echo "$(CURDIR)/python" > needle.pth
	@touch $@

setup: .venv/installed

# --- build ----------------------------------------------------------------------------------------------------------

# One folder for each interpreter, so that a change of interpreter leaves nothing stale.
tag = $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))')
configure = $(BIN)/cmake -S . -G Ninja -DCMAKE_MAKE_PROGRAM="$(CURDIR)/$(BIN)/ninja" \
	-DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" $(CMAKE_FLAGS)

build: setup
	@dir="build/$(tag)"; \
	[ "$$dir/build.ninja" -nt .venv/installed ] || $(configure) -B "$$dir" --fresh && $(BIN)/ninja -C "$$dir"

# --- programs -------------------------------------------------------------------------------------------------------

train: build
	$(BIN)/python apps/train_mnist.py $(ARGS)

train-cifar10: build
	$(BIN)/python apps/train_cifar10.py $(ARGS)

train-lm: build
	$(BIN)/python apps/train_lm.py $(ARGS)

fit-sine: build
	$(BIN)/python apps/fit_sine.py $(ARGS)

# A process for each core.
test: build
	$(BIN)/python -m pytest -n auto $(ARGS)

# Needs PyTorch, which nothing else does: .venv/bin/pip install torch
test-torch: build
	@$(BIN)/python -c 'import torch' 2>/dev/null \
		$(call or_say,PyTorch for this: $(BIN)/python -m pip install torch)
	$(BIN)/python -m pytest -n auto -m torch $(ARGS)

bench: build
	$(BIN)/python -m bench $(ARGS)

# --- the course -----------------------------------------------------------------------------------------------------

course = PYTHONPATH="$(CURDIR)/python" $(BIN)/python -m needle_course

# build/stages: a zip for each stage, with its handout, and the wheel of needle-course that holds them all.
stages: build
	$(course).release $(ARGS)

# As a student goes, with nothing but that wheel; make walk ARGS="--answers reference --stage hw0" goes a part.
walk: build
	$(course).walk $(ARGS)

# The planted bugs of the stages and the tests that find them.
mutants: build
	$(course).mutants --markdown $(ARGS)

# --- checks ---------------------------------------------------------------------------------------------------------

cpp_files = find src hw_stages -path hw_stages/plain_student -prune -o -regex '.*\.\(cc\|cpp\|cu\|cuh\|h\)' -exec

check: lint types layers gates

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(cpp_files) $(BIN)/clang-format --dry-run -Werror {} +
	@echo "CMake configures without a warning"
	@! $(configure) -B build/configure --fresh 2>&1 >/dev/null | grep .

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/python -m pytest -q tests/unit/test_import_layers.py tests/unit/test_repository.py

# The release gates of the course; make gates ARGS="--stage hw1 --gate leaks" runs a part.
gates: build
	$(course).gates --jobs "$$(nproc 2>/dev/null || echo 1)" $(ARGS)

format: setup
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(cpp_files) $(BIN)/clang-format -i {} +

# The module of this build stays in its own folder. The sanitizers' libraries come first in the process. The memory pool
# would hide a use after free, and pytest's capture the report, which ends with the Python stack as aborts do.
sanitized = $(CURDIR)/build/sanitize-$(tag)
library = $$($${CXX:-g++} -print-file-name=$(1))

sanitize: setup
	$(configure) -B "$(sanitized)" -DNEEDLE_SANITIZE=ON -DNEEDLE_MODULE_DIR="$(sanitized)/modules"
	$(BIN)/ninja -C "$(sanitized)"
	LD_PRELOAD="$(call library,libasan.so) $(call library,libubsan.so)" \
	ASAN_OPTIONS=abort_on_error=1:allocator_may_return_null=1:detect_leaks=0 \
	UBSAN_OPTIONS=abort_on_error=1:print_stacktrace=1 NEEDLE_POOL=0 NEEDLE_MODULE_DIR="$(sanitized)/modules" \
		$(BIN)/python -m pytest --capture=sys --device cpu $(ARGS)

clean:
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find python tests hw_stages -name '*.so' -delete
