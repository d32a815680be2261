# make train: the whole R1-Zero recipe on the embedded base.   make test: the tests.   Both set up .venv by themselves.
REASONER = .venv/bin/reasoner
PYTHON = .venv/bin/python

.PHONY: train test check coverage docs clean setup
train: setup
	$(REASONER) train --model base
test: setup
	OMP_NUM_THREADS=1 $(PYTHON) -m pytest -q --numprocesses 2 --dist loadfile --no-loadscope-reorder
check: setup
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
coverage: setup
	$(PYTHON) -m pytest -q --cov=verifiers tests/verifiers
docs: setup
	$(PYTHON) -m reasoner.config.resolve > docs/config.md
	$(PYTHON) -m reasoner.runs.metric_names > docs/METRICS.md
setup:
	@scripts/setup.sh
clean:
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache
