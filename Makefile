# make crawl   crawls (without SEEDS: the synthetic web that ships with the project; WORKERS=2 uses two cores)
# make search  the same, and a page at 127.0.0.1:8771 (PORT=) that finds each of its pages a minute later at most
# make test    checks and tests, all of them
# make hostile attacks on a crawl and on those around it, and one table of who pays what (ARGS="--write": into SECURITY.md)
# make hunt    the laws that the tests know, on new random examples (ARGS goes to pytest)
# make coverage  the tests under coverage.py, with branches (ARGS goes to pytest: ARGS=tests/rules)
# make fuzz    the native page reader under AddressSanitizer and UBSan (SECONDS=600)
# make bench   other crawlers and this one on the same pages (ARGS="--write" puts the result into docs/)
# make conformance  the tests of peers and standards against ours, as they publish them (ARGS="robots" runs one suite)
# make frames  the examples of the documentation with pandas, polars, datasets and Spark
# make deploy  hands the crawler to the scrapyd that scrapy.cfg names (TARGET=local)
# make docs    the documentation as a site, in build/site, with every link checked; make docs-serve shows it
# make manifests  compose file and Kubernetes objects: what they name, their schemas, the Redis that they start
# make alerts  the alert rules, checked and tested by Debian's promtool; rules and dashboard asked of a crawl
# make lock    hashes, licences and the bill of materials again, after a change of requirements.txt
# make audit   known weaknesses of the pinned packages, where the data can be reached; says so where not
# They make what is missing first: .venv, the pinned packages, Debian's packages that tests need.

VENV := .venv
PY := $(VENV)/bin/python
# The newest Python that the pinned packages have wheels for and that can make an environment, of those built with CPython's optimisations
# if there is one: all on PATH are asked. A .venv that is there is kept.
PYTHONS := python3.14 python3.13 python3.12 python3.11 python3
ifeq ($(origin PYTHON),undefined)
PYTHON := $(if $(wildcard $(PY)),$(PY),$(or $(shell for wanted in optimised fitting; do for name in $(PYTHONS); do \
	IFS=:; for folder in $$PATH; do "$$folder/$$name" scripts/python_build.py $$wanted 2>/dev/null && echo "$$folder/$$name" && exit; \
	done; done; done),python3))
endif
READY := $(VENV)/.ready
DEV_READY := $(VENV)/.ready-dev
TOOLS := .venv-tools
TOOLS_READY := $(TOOLS)/.ready
PEERS := .venv-bench
ENGINES := .venv-engines
CONFORMANCE := .venv-conformance
DOCS := .venv-docs
APT := $(if $(filter 0,$(shell id -u)),,sudo )env DEBIAN_FRONTEND=noninteractive apt-get

# Debian packages that the tests drive as separate programs.
TEST_PACKAGES := debian-handbook redis-server

CHECKS = $(PY) -m ruff check --quiet . && $(PY) -m ruff format --check --quiet . && $(PY) -m mypy

SEEDS ?=
WORKERS ?=
PORT ?=
ARGS ?=
TARGET ?= local
DOCS_PORT ?= 8000
export SEEDS WORKERS PORT # through the environment: URLs hold characters that a shell would read

.PHONY: help crawl search test hostile hunt coverage conformance bench-conformance bench-after frames check format deploy packages browser bench native fuzz lock alerts manifests audit docs docs-serve
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile
	@ls benchmarks/*.py benchmarks/*/__main__.py 2>/dev/null | sed -e 's,/__main__.py,,' -e 's,^benchmarks/,make bench-,' \
		-e 's,\.py$$,,' -e 's,_,-,g' -e '/bench---init--$$/d' | sort -u

crawl: $(READY) native
	@$(PY) scripts/crawl.py -- $(ARGS)

search: $(READY) native
	@$(PY) scripts/search.py -- $(ARGS)

test: packages browser native $(DEV_READY) $(TOOLS_READY)
	@# Whole files at a time: crawls are shared within one. They mostly wait: five workers left two cores idle for a fifth
	@# of the time. tests/conftest.py has the longest begin. What one worker has compiled, the others read.
	@mkdir -p build; ($(CHECKS)) >build/checks.log 2>&1 & checks=$$!; \
	env -u PYTHONDONTWRITEBYTECODE $(PY) -m pytest -q -n 7 --dist loadfile --no-loadscope-reorder \
		-m "not long_attack"; tests=$$?; \
	if [ $$tests -eq 1 ]; then echo "Once more, alone, what has failed:"; \
		SECOND_LOOK=1 $(PY) -m pytest -q -n 0 --last-failed --last-failed-no-failures none -m "not long_attack"; tests=$$?; \
		[ $$tests -ne 0 ] || echo "What is FAILED above passed alone: a fault all the same, of the test or the crawler."; fi; \
	wait $$checks || { cat build/checks.log; exit 1; }; exit $$tests

# Those that take too long for every test run as well.
hostile: packages browser native $(DEV_READY) $(TOOLS_READY)
	@$(PY) -m pytest -q -n 2 --dist loadfile -p tests.hostile.ledger tests/hostile \
		tests/crawls/fleet/test_redis_forgot.py tests/scrapyd tests/crawls/test_searched.py $(ARGS)

hunt: $(DEV_READY) native
	@$(PY) -m pytest -q -n 3 --hypothesis-profile=hunt tests/rules tests/frontier tests/fetch tests/stores $(ARGS)

# Processes that the tests start are counted as well (pyproject.toml). It takes twice the time of the tests.
coverage: packages browser native $(DEV_READY) $(TOOLS_READY)
	@$(PY) -m coverage erase
	@-$(PY) -m coverage run -m pytest -q -n 4 --dist loadfile --no-loadscope-reorder -m "not long_attack" $(ARGS)
	@$(PY) -m coverage combine -q
	@$(PY) -m coverage report

fuzz: | $(READY)
	@command -v clang >/dev/null || { echo "Installing clang"; $(APT) update -qq; \
		$(APT) install -qq -y --no-install-recommends clang libclang-rt-dev >/dev/null; }
	@$(PY) scripts/fuzz_native.py $(or $(SECONDS),600)

check: $(DEV_READY)
	@$(CHECKS)

# Rewrites the sources as `make check` wants them.
format: $(DEV_READY)
	@$(PY) -m ruff check --quiet --fix .
	@$(PY) -m ruff format --quiet .

bench: $(DEV_READY) native $(PEERS)/.ready
	@$(PY) -m benchmarks.side_by_side $(ARGS)

$(PEERS)/.ready: requirements-bench.txt
	@echo "Preparing $(PEERS) with the crawlers to compare with (a minute, the first time only)"
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check -r requirements-bench.txt
	@touch $@

bench-engines: $(DEV_READY) native $(ENGINES)/.ready
	@$(ENGINES)/bin/python -m benchmarks.engines $(ARGS)

# The examples of the documentation, those that want pandas, polars, datasets or Spark included.
frames: $(DEV_READY) native $(ENGINES)/.ready
	@HF_HOME=build/huggingface HF_HUB_OFFLINE=1 $(ENGINES)/bin/python -m pytest -q tests/test_api.py tests/test_examples.py $(ARGS)

# Spark and others beside the packages of .venv, which are not installed a second time.
$(ENGINES)/.ready: requirements-engines.txt | $(DEV_READY)
	@command -v java >/dev/null || { echo "Installing default-jre-headless"; $(APT) update -qq; \
		$(APT) install -qq -y --no-install-recommends default-jre-headless >/dev/null; }
	@echo "Preparing $(ENGINES) with Spark, pandas, polars and datasets (two minutes, the first time only)"
	@$(PY) -m venv $(ENGINES)
	@$(ENGINES)/bin/python -m pip install -qq --no-deps --disable-pip-version-check -r requirements-engines.txt
	@for name in $(VENV) $(ENGINES); do $$name/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; done | { \
		read -r ours; read -r theirs; echo "$$ours" > "$$theirs/crawler.pth"; }
	@touch $@

conformance bench-conformance: $(DEV_READY) native $(CONFORMANCE)/.ready
	@$(CONFORMANCE)/bin/python -m benchmarks.conformance $(ARGS)

# The peers beside the packages of .venv, and their sources with the tests in them: never committed, always as published.
$(CONFORMANCE)/.ready: requirements-conformance.txt requirements-conformance-sources.txt | $(DEV_READY)
	@echo "Preparing $(CONFORMANCE) with peers and their tests (half a minute, the first time only)"
	@rm -rf $(CONFORMANCE) && $(PY) -m venv $(CONFORMANCE)
	@for name in $(VENV) $(CONFORMANCE); do $$name/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; done | { \
		read -r ours; read -r theirs; echo "$$ours" > "$$theirs/crawler.pth"; }
	@$(CONFORMANCE)/bin/python -m pip install -qq --disable-pip-version-check --no-deps --require-hashes -r requirements-conformance.txt
	@mkdir $(CONFORMANCE)/sources && cd $(CONFORMANCE)/sources && ../bin/python -m pip download -qq --disable-pip-version-check \
		--no-deps --no-build-isolation --no-binary :all: --require-hashes -r ../../requirements-conformance-sources.txt
	@cd $(CONFORMANCE)/sources && for archive in *.tar.gz; do tar -xzf "$$archive" && rm "$$archive"; done
	@touch $@

# A link that leads nowhere, or a page that no list names, is an error.
docs: $(DOCS)/.ready
	@$(DOCS)/bin/python -m sphinx -q -W --keep-going -b html -c docs/site . build/site
	@echo "build/site/index.html; make docs-serve shows it"

docs-serve: docs
	@$(DOCS)/bin/python -m http.server --bind 127.0.0.1 --directory build/site $(DOCS_PORT)

$(DOCS)/.ready: requirements-docs.txt
	@echo "Preparing $(DOCS) with Sphinx (half a minute, the first time only)"
	@$(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install -qq --disable-pip-version-check -r requirements-docs.txt
	@touch $@

# Verifiers of npm beside those of PyPI, pinned with hashes.
$(CONFORMANCE)/node/.ready: benchmarks/web_bot_auth/package-lock.json $(CONFORMANCE)/.ready
	@command -v npm >/dev/null || { echo "Installing npm"; $(APT) update -qq; \
		$(APT) install -qq -y --no-install-recommends npm >/dev/null; }
	@mkdir -p $(CONFORMANCE)/node && cp benchmarks/web_bot_auth/package*.json $(CONFORMANCE)/node
	@cd $(CONFORMANCE)/node && npm ci --silent --no-audit --no-fund
	@touch $@

bench-web-bot-auth: $(DEV_READY) native packages browser $(CONFORMANCE)/node/.ready
	@$(CONFORMANCE)/bin/python -m benchmarks.web_bot_auth $(ARGS)

bench-after: $(DEV_READY) native $(TOOLS_READY) $(PEERS)/.ready
	@$(PY) -m benchmarks.after $(ARGS)

# Builds the egg and hands it to the scrapyd that scrapy.cfg names under [deploy:$(TARGET)].
deploy: $(DEV_READY)
	@$(VENV)/bin/scrapyd-deploy $(TARGET)

# `make bench-real-pages` runs benchmarks/real_pages; ARGS go to it.
bench-%: $(DEV_READY) native
	@$(PY) -m benchmarks.$(subst -,_,$*) $(ARGS)

# Hashes of every file of each pin, for all platforms: pip install --require-hashes -r requirements.lock
lock: $(READY)
	@$(PY) -m venv build/lock
	@build/lock/bin/python -m pip install -qq --disable-pip-version-check uv==0.13.9
	@build/lock/bin/uv pip compile -q requirements.txt --universal --generate-hashes --no-header --no-annotate \
		-o requirements.lock >/dev/null
	@$(PY) scripts/supply_chain.py

# Debian's Prometheus, unpacked and not installed: an installed one starts as a service of the machine.
build/prometheus/usr/bin/promtool:
	@mkdir -p build/prometheus
	@echo "Fetching prometheus"; $(APT) update -qq; cd build/prometheus && apt-get download -qq prometheus
	@cd build/prometheus && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb

build/manifests/bin/kubernetes-validate:
	@echo "Fetching kubernetes-validate"; $(PYTHON) -m venv build/manifests
	@build/manifests/bin/pip -q install kubernetes-validate==1.37.0

manifests: $(DEV_READY) $(TOOLS_READY) build/manifests/bin/kubernetes-validate
	@$(PY) -m pytest -q -n 0 tests/deploy/test_fleet_files.py

alerts: $(DEV_READY) native build/prometheus/usr/bin/promtool
	@$(PY) -m pytest -q -n 0 tests/deploy/test_alerts.py tests/deploy/test_expressions.py

# What troubles are made with: a Redis, an S3 and a browser.
bench-alerts: build/prometheus/usr/bin/promtool packages browser $(TOOLS_READY)

audit: | $(READY)
	@$(PY) scripts/audit.py

# The page reader in C, where there is a compiler; it looks for itself whether it was built of other sources.
native: | $(READY)
	@$(PY) scripts/build_native.py

packages:
	@missing=""; for name in $(TEST_PACKAGES); do \
		dpkg-query --show --showformat='$${Status}' $$name 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$name"; \
	done; \
	if [ -n "$$missing" ]; then \
		echo "Installing$$missing"; $(APT) update -qq && $(APT) install -qq -y --no-install-recommends $$missing >/dev/null; \
	fi

# The headless shell shows a page for a third of the CPU; some tests have Debian's whole browser. Ubuntu has it as a snap only, which
# other programs cannot drive well: Playwright fetches both there.
browser: | $(READY)
	@found=$$($(PY) -c 'from crawlerproject.config.chromium import find_chromium as find; print(find("") or "")'); \
	case $$found in *headless*) exit;; ?*) apt-cache show chromium-headless-shell >/dev/null 2>&1 || exit 0;; esac; \
	echo "Installing chromium-headless-shell"; $(APT) update -qq; \
	$(APT) install -qq -y --no-install-recommends chromium-headless-shell chromium >/dev/null 2>&1 || [ "$$found" ] \
		|| $(VENV)/bin/playwright install --with-deps chromium

$(READY): requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is too old: Python 3.11 or newer is needed (make PYTHON=python3.11 ...)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null \
		|| { echo "Installing python3-venv"; $(APT) update -qq && $(APT) install -qq -y python3-venv >/dev/null; }
	@echo "Preparing $(VENV) with $(PYTHON) (a minute, the first time only)"
	@$(PYTHON) -m venv $(VENV)
	@$(PY) scripts/python_build.py
	@$(PY) -m pip install -qq --disable-pip-version-check -r requirements.txt
	@touch $@

$(DEV_READY): requirements-dev.txt $(READY)
	@$(PY) -m pip install -qq --disable-pip-version-check -r requirements-dev.txt
	@touch $@

$(TOOLS_READY): requirements-tools.txt | $(READY)
	@echo "Preparing $(TOOLS) (half a minute, the first time only)"
	@$(PYTHON) -m venv $(TOOLS)
	@$(TOOLS)/bin/python -m pip install -qq --no-deps --disable-pip-version-check -r requirements-tools.txt
	@touch $@
