# Every target makes its own .venv: python3, pip, venv and make are all a machine needs.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
DATA ?= $(LAWFUL_DATA)
N ?= 100000
SEED ?= 0
SAMPLE ?= 40

.PHONY: demo test test-slow test-torch test-gpu test-data test-browser test-skops test-parquet test-dask test-min dist audit newcomer kills coverage mutants fuzz lint bench docs reproduce clean

$(RUN):
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml | $(RUN)
	$(RUN) -m pip install --quiet --editable ".[plot]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(RUN)
	$(RUN) -m pip install --quiet --editable ".[dev]"
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo  ## circle and lemniscate from 100 noisy points: a table, and a picture in out/
	$(RUN) examples/demo.py --out out

# The matrices of the tests are small: threads of BLAS would only wait for each other and for the other worker.
test test-slow test-torch test-data test-browser test-dask: export OMP_NUM_THREADS = 1

test: $(VENV)/.dev  ## all tests that need no extra package, data or patience
	$(RUN) -m pytest -n 2 --dist loadgroup -q

test-slow: $(VENV)/.dev  ## statistical and benchmark checks that take minutes
	$(RUN) -m pytest -n 2 --dist loadgroup -q -m slow

# Where pip would fetch a build with CUDA: make test-torch TORCH_INDEX=https://download.pytorch.org/whl/cpu
test-torch: $(VENV)/.dev  ## the numerical core on torch tensors (CPU)
	$(RUN) -m pip install --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch==2.13.0
	$(RUN) -m pytest -q -m "torch and not gpu"

test-gpu: $(VENV)/.dev  ## the same on a GPU (needs torch with CUDA in .venv)
	$(RUN) -m pytest -q -m gpu

test-data: $(VENV)/.dev  ## make test-data DATA=folder-with-distillation-and-sarcos
	LAWFUL_DATA="$(DATA)" $(RUN) -m pytest -q -m data

test-browser: $(VENV)/.dev  ## the report and the built documentation in headless Chromium (needs chromium and chromedriver; make docs first)
	$(RUN) -m pip install --quiet --editable ".[browser]"
	$(RUN) -m pytest -q -m browser

test-skops: $(VENV)/.dev  ## models with trees inside, saved by skops
	$(RUN) -m pip install --quiet --editable ".[skops]"
	$(RUN) -m pytest -q -m skops

test-parquet: $(VENV)/.dev  ## the command line on Parquet files
	$(RUN) -m pip install --quiet pyarrow
	$(RUN) -m pytest -q -m parquet

test-dask: $(VENV)/.dev  ## dask collections and Parquet folders on a cluster of two processes
	$(RUN) -m pip install --quiet --editable ".[dask]"
	$(RUN) -m pytest -q -m dask

test-min:  ## all tests with the lowest versions that pyproject.toml allows, in an environment of their own
	$(PYTHON) -m venv .venv-min
	$(PYTHON) scripts/lowest.py > .venv-min/lowest.txt
	.venv-min/bin/python -m pip install --quiet --constraint .venv-min/lowest.txt --editable ".[dev]"
	OMP_NUM_THREADS=1 .venv-min/bin/python -m pytest -n 2 --dist loadgroup -q -W ignore::DeprecationWarning -W ignore::FutureWarning

dist: $(VENV)/.dev  ## wheel and sdist, checked: contents, an empty environment, a smoke test
	rm -rf dist
	$(RUN) -m pip install --quiet build
	$(RUN) -m build --outdir dist
	$(RUN) scripts/check_dist.py dist

# --strict: a package that cannot be looked up is a failure, not a pass.
audit: $(VENV)/.dev  ## known vulnerabilities of what is installed; needs the network
	$(RUN) -m pip install --quiet pip-audit
	$(RUN) -m pip freeze --exclude-editable > $(VENV)/installed.txt
	$(RUN) -m pip_audit --strict --no-deps --disable-pip --requirement $(VENV)/installed.txt

newcomer:  ## make newcomer DATA=folder: a new user in a fresh folder and environment; without DATA on generated data
	PYTHON=$(PYTHON) scripts/newcomer.sh $(if $(DATA),"$(DATA)/distillation")

kills: $(VENV)/.dev  ## kill -9 at 50 random moments each of fit and predict; 10,000 fits without memory growth
	OMP_NUM_THREADS=1 $(RUN) -m pytest -q -m slow tests/test_reliability.py

# Contexts say which test ran a line, and the XML how long each took: `make mutants` asks both.
CORE := */losses/*,*/sets/*,*/decoders/base.py,*/surrogates/exact.py
coverage: export COVERAGE_FILE = .coverage-data/.coverage
coverage: $(VENV)/.dev  ## lines that the tests run: of every module, and at least 95 % of the numerical core
	$(RUN) -m pip install --quiet --editable ".[mutants]"
	rm -rf .coverage-data && mkdir .coverage-data
	OMP_NUM_THREADS=1 $(RUN) -m pytest -n 2 --dist loadgroup -q --cov=lawful --cov-context=test --cov-report= \
		--junitxml=.coverage-data/times.xml
	$(RUN) -m coverage report --skip-covered
	$(RUN) -m coverage report --include="$(CORE)" --fail-under=95

mutants: .coverage-data/times.xml  ## make mutants SAMPLE=40 SEED=0: mutation testing of the numerical core, at least 85 % killed
	OMP_NUM_THREADS=1 $(RUN) scripts/mutants.py --sample $(SAMPLE) --seed $(SEED)

.coverage-data/times.xml:
	$(MAKE) coverage

fuzz: $(VENV)/.dev  ## make fuzz N=100000 SEED=0: random laws and calls against the promise of a certificate per row
	$(RUN) -m tests.fuzz --n $(N) --seed $(SEED) --jobs 2

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(VENV)/.dev  ## make bench DATA=folder: the figures of docs/benchmarks.md, which are not in results/
	$(RUN) benchmarks/lemniscate.py
	OMP_NUM_THREADS=1 $(RUN) benchmarks/laws.py --quick
	$(RUN) benchmarks/metrics.py --data "$(DATA)"
	$(RUN) benchmarks/distillation.py --data "$(DATA)"
	$(RUN) benchmarks/discover.py --data "$(DATA)"
	$(RUN) -m pip install --quiet --editable ".[bench]"
	$(RUN) benchmarks/selection.py
	$(RUN) benchmarks/regress.py --part suite heavy speed --data "$(DATA)"
	$(RUN) benchmarks/ordering.py --data "$(DATA)"
	$(RUN) benchmarks/ranking.py --data "$(DATA)"
	$(RUN) benchmarks/labels.py --data "$(DATA)"
	$(RUN) benchmarks/rivals.py --data "$(DATA)"

docs: $(VENV)/.dev  ## the documentation, in docs/_build/html: gallery and examples run, warnings are errors, links checked
	$(RUN) -m pip install --quiet --editable ".[docs]"
	OMP_NUM_THREADS=1 $(RUN) -m sphinx -b html -j 2 -W --keep-going -q docs docs/_build/html
	$(RUN) docs/check.py docs/_build/html

reproduce: $(VENV)/.demo  ## make reproduce DATA=folder-with-sarcos-and-ml-100k [ARGS="--trials 3 --seed 7"]; ARGS=--quick needs no data
	$(VENV)/bin/lawful reproduce all --out reproduction --resume $(if $(DATA),--data "$(DATA)") $(ARGS)

clean:
	rm -rf $(VENV) .venv-min .coverage-data dist out reproduction docs/_build docs/api docs/gallery docs/sg_execution_times.rst
