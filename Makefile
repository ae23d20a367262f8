# SPDX-FileCopyrightText: StackPulse contributors
# SPDX-License-Identifier: MIT
# The front door; the build itself is meson's. `make` builds build/stackpulse.
PREFIX ?= /usr/local
DESTDIR ?=
MESON ?= meson
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
export JOBS

build: build/build.ninja
ifneq ($(origin PREFIX),file)
	@$(MESON) configure build --prefix=$(PREFIX)
endif
	ninja -C build -j $(JOBS)

build/build.ninja:
	@sh scripts/install-deps --check build || sh scripts/install-deps build
	$(MESON) setup build --buildtype=release --prefix=$(PREFIX) -Dtests=false

# Installs what is missing, builds, records a real program and draws its flame graph.
demo:
	sh scripts/install-deps build
	$(MAKE) build
	sh scripts/demo

# Builds twice (release with warnings as errors, and with sanitizers), runs every test under both,
# and the unit tests as AArch64 programs.
test:
	sh scripts/install-deps test
	python3 tests/run

# The unit tests as AArch64 programs, under qemu-user.
test-aarch64:
	sh scripts/install-deps test
	python3 tests/run --build aarch64

# What takes minutes: more rounds, bigger inputs.
test-long:
	sh scripts/install-deps test
	python3 tests/run --suite long

# What needs a big download.
test-peers:
	sh scripts/install-deps test
	python3 tests/run --suite peers

# Ratios against a peer, on the same work in the same run.
bench: build
	python3 bench/run
	bench/symbolize --build build

asan:
	sh scripts/install-deps test
	python3 tests/run --build-only asan

# Programs find the library once the loader's cache has it, where its folder is searched at all.
install: build
	DESTDIR=$(DESTDIR) $(MESON) install -C build --no-rebuild
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig || true

# The lines that were changed since BASE; what nobody touched stays as it is.
BASE ?= HEAD
format:
	git clang-format --force --extensions c,h $(BASE)

lint:
	python3 scripts/lint

clean:
	rm -rf build build-release build-asan build-aarch64 build-cross

.PHONY: build demo test test-aarch64 test-long test-peers bench asan install format lint clean
.DEFAULT_GOAL := build
