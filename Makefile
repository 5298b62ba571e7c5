# Each of these installs what it lacks (scripts/setup) and needs nothing else typed.
#
#   make demo              play media twice through the cache and see which bytes came from where
#   make demo MEDIA=…      the same with a file or a URL of yours
#   make test              all tests; plays with mpv, ffmpeg and Chromium, through HAProxy, where they can be had
#   make test-players      what plays through the proxy, with VLC and GStreamer, too
#   make soak SECONDS=600  simulated plays of fresh seeds for ten minutes, in release
#   make fuzz SECONDS=600  each fuzzer of Fuzz/ for ten minutes
#   make sanitize          the engine's tests under ThreadSanitizer, then under AddressSanitizer
#   make lint              format, warnings, public symbols, privacy manifests, language, and what an app resolves
#   make api               list the public symbols anew, in docs/api.txt
#   make docs              the documentation as a web site, in .build/docs/site
#   make manual            man pages and shell completions, in .build/manual
#   make install PREFIX=…  a release, its man pages and completions, into /usr/local unless told
#   make dist              the same as an archive for other machines, in .build/dist
#   make build, release    the command, as .build/debug/spool or .build/release/spool
#   make clean             remove what was built

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.PHONY: demo test test-players soak fuzz sanitize lint api docs manual install dist build release clean setup setup-media setup-tests setup-players

LIBRARIES := libmpv-dev libsqlite3-dev
# A release without its symbol table is about half as large. Apple's linker keeps the names that others may look up.
STRIPPED := -Xlinker $(if $(filter Darwin,$(shell uname)),-x,-s)
# On Linux a release needs nothing of Swift where it runs.
STANDALONE := $(if $(filter Darwin,$(shell uname)),,--static-swift-stdlib --traits Tools,StaticLinking)
export MEDIA ?=
PREFIX ?= /usr/local
# The order of a package's traits among the compiler's flags is that of a hashed collection: another order builds all anew.
export SWIFT_DETERMINISTIC_HASHING := 1
# Tests that run at once: more than there are processors only makes those wait that are timed.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 3
FORMATTED := Sources Tests Examples Benchmarks Fuzz scripts Package.swift

demo: setup-media
	@echo "— building the spool command (the first time takes some minutes)"
	@swift build --product spool
	@echo "— playing"
	@.build/debug/spool demo $${MEDIA:+"$$MEDIA"}

test: setup-tests
	@scripts/setup --optional mpv chromium chromium-driver haproxy
	@echo "— building and running the tests"
	@mkdir -p .build
	@set -o pipefail; swift test 2>&1 | tee .build/test.log || \
		{ echo "— what failed, once more"; grep -aE -A4 "recorded an issue|error:|Fatal" .build/test.log; exit 1; }

test-players: setup-tests setup-players
	@echo "— playing through the proxy with every player"
	@SPOOL_PLAYERS=all swift test --filter PlayerTests

soak: setup-tests
	@scripts/soak $(or $(SECONDS),60)

fuzz: setup
	@scripts/fuzz $(or $(SECONDS),60)

sanitize: setup-tests
	@scripts/sanitize thread
	@scripts/sanitize address

lint: setup
	@echo "— checking the format"
	@swift format lint --strict --recursive --parallel $(FORMATTED)
	@echo "— building everything, warnings in our own targets being errors"
	@SPOOL_WARNINGS=error swift build --build-tests
	@echo "— checking the list of public symbols"
	@scripts/api --check
	@echo "— checking the privacy manifests"
	@scripts/check-privacy
	@echo "— checking the language"
	@scripts/check-language --self-test
	@scripts/check-language
	@echo "— checking what an app resolves"
	@scripts/check-app

api: setup
	@echo "— listing the public symbols"
	@swift build
	@scripts/api

docs: setup
	@echo "— building the documentation"
	@swift build --quiet
	@scripts/docs

manual: release
	@scripts/manual .build/release/spool

install: manual
	@echo "— installing into $(PREFIX)"
	@scripts/install "$(PREFIX)"

dist: manual
	@echo "— packing"
	@scripts/dist

build: setup
	@echo "— building .build/debug/spool"
	@swift build --product spool

release: setup
	@echo "— building .build/release/spool"
	@swift build --configuration release --product spool $(STANDALONE) $(STRIPPED)

clean:
	@echo "— removing .build"
	@rm -rf .build

setup:
	@scripts/setup $(LIBRARIES)

setup-media:
	@scripts/setup $(LIBRARIES) ffmpeg

setup-tests:
	@scripts/setup $(LIBRARIES) ffmpeg nginx openssl

setup-players:
	@scripts/setup --optional mpv chromium chromium-driver vlc-bin vlc-plugin-base gstreamer1.0-tools \
		gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly \
		gstreamer1.0-libav python3-gi gir1.2-gstreamer-1.0
