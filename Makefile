# Each target installs missing packages first (scripts/setup).
#
#   make demo              play media twice through the cache, serve it to ffmpeg, and show the source of the bytes
#   make demo MEDIA=…      the same with your file or URL
#   make demo WATCH=1      the same, and keeps the server and its page running
#   make test              all tests, including mpv, ffmpeg, Chromium and HAProxy if they can be installed
#   make test-players      the tests of players with the proxy server, including VLC and GStreamer
#   make apple-report      play media on this machine, on Macs also in simulators, and record how the player behaves
#   make soak SECONDS=600  simulated playback with new seeds for ten minutes, in a release build
#   make fuzz SECONDS=600  each fuzzer of Fuzz/ for ten minutes
#   make sanitize          the engine's tests with ThreadSanitizer, then with AddressSanitizer
#   make lint              check format, warnings, public symbols, privacy, language, reference, and dependencies of apps
#   make api               update the list of public symbols in docs/api.txt
#   make images            the images of the live page in docs/images, from a real server in Chromium
#   make docs              the documentation as a website, in .build/docs/site
#   make manual            man pages and shell completions, in .build/manual
#   make install PREFIX=…  install a release with man pages and completions (default: /usr/local)
#   make dist              an archive of the release for other machines, in .build/dist
#   make build, release    the command, as .build/debug/spool or .build/release/spool
#   make clean             remove .build

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.PHONY: demo test test-players apple-report soak fuzz sanitize lint api images docs manual install dist build release clean setup setup-media setup-tests setup-players

LIBRARIES := libmpv-dev libsqlite3-dev
# Without its symbol table, a release is about half as large. Apple's linker retains the exported names.
STRIPPED := -Xlinker $(if $(filter Darwin,$(shell uname)),-x,-s)
# No trait is enabled by default. The command, the server and the tests need this trait.
TRAITS := --traits Tools
# On Linux, a release runs without a Swift installation.
STANDALONE := $(if $(filter Darwin,$(shell uname)),$(TRAITS),--static-swift-stdlib --traits Tools,StaticLinking)
export MEDIA ?=
export WATCH ?=
PREFIX ?= /usr/local
# SwiftPM takes the order of traits in the compiler's flags from a hashed collection. Another order would cause a
# complete rebuild.
export SWIFT_DETERMINISTIC_HASHING := 1
# The maximum number of concurrent tests. With more tests than processors, tests with time limits would wait for a
# processor.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH ?= 3
# If TEST_MINUTES is set, a run that is not complete after that time is stopped and fails.
LIMITED := $(if $(TEST_MINUTES),timeout $(TEST_MINUTES)m)
FORMATTED := Sources Tests Examples Benchmarks Fuzz scripts Package.swift

demo: setup-media
	@echo "— building the spool command (the first time takes several minutes)"
	@swift build $(TRAITS) --product spool
	@echo "— playing"
	@.build/debug/spool demo $${WATCH:+--watch} $${MEDIA:+"$$MEDIA"}

test: setup-tests
	@scripts/setup --optional mpv chromium chromium-driver python3-selenium haproxy iproute2
	@echo "— building and running the tests"
	@mkdir -p .build
	@swift build $(TRAITS) --build-tests
	@set -o pipefail; $(LIMITED) swift test $(TRAITS) --skip-build 2>&1 | tee .build/test.log || \
		{ echo "— failures"; grep -aE -A4 "recorded an issue|error:|Fatal" .build/test.log || true; \
		$(if $(TEST_MINUTES),echo "— the run may take at most $(TEST_MINUTES) minutes";) exit 1; }

test-players: setup-tests setup-players
	@echo "— playing through the proxy with every player"
	@SPOOL_PLAYERS=all swift test $(TRAITS) --filter PlayerTests

# REPORT_DESTINATIONS names the simulators, separated by semicolons.
apple-report: setup
	@scripts/apple-report "$(REPORT_DESTINATIONS)"

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
	@echo "— building everything; warnings in our targets are errors"
	@SPOOL_WARNINGS=error swift build $(TRAITS) --build-tests
	@echo "— checking the list of public symbols"
	@scripts/api --check
	@echo "— checking the privacy manifests"
	@scripts/check-privacy
	@echo "— checking the language"
	@scripts/check-language --self-test
	@scripts/check-language
	@echo "— checking the reference documentation"
	@scripts/check-reference --self-test
	@scripts/check-reference
	@echo "— checking the packages that an app resolves"
	@scripts/check-app

api: setup
	@echo "— listing the public symbols"
	@swift build $(TRAITS)
	@scripts/api

images: setup-media
	@scripts/setup nginx chromium chromium-driver python3-selenium
	@echo "— building the spool command"
	@swift build $(TRAITS) --product spool
	@echo "— taking images of the live page"
	@scripts/live-page --images docs/images --views .build/images

docs: setup
	@echo "— building the documentation"
	@swift build $(TRAITS) --quiet
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
	@swift build $(TRAITS) --product spool

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
