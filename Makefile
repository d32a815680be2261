# make train: the whole R1-Zero recipe on the embedded base.   make test: the default tests.   make slow: the nightly ones.
# All set up .venv by themselves.
REASONER = .venv/bin/reasoner
PYTHON = .venv/bin/python

.PHONY: train test slow check coverage docs site clean setup
train: setup
	$(REASONER) train --model base
test: setup
	OMP_NUM_THREADS=1 $(PYTHON) -m pytest -q --numprocesses 3 --dist loadfile --no-loadscope-reorder
slow: setup
	OMP_NUM_THREADS=1 $(PYTHON) -m pytest -q -m slow --timeout 3600 --numprocesses 2 --dist loadfile
check: setup
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
coverage: setup
	$(PYTHON) -m pytest -q --cov=verifiers tests/verifiers
docs: setup
	$(PYTHON) -m reasoner.doctor.preset_fit > reasoner/config/preset_machines.toml
	$(PYTHON) -m reasoner.config.resolve > docs/config.md
	$(PYTHON) -m reasoner.config.other_names > docs/FROM_TRL_AND_VERL.md
	$(PYTHON) -m reasoner.runs.metric_names > docs/METRICS.md
site: setup
	$(PYTHON) -m pip install -q -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict
setup:
	@scripts/setup.sh
clean:
	rm -rf .venv build site *.egg-info .pytest_cache .mypy_cache .ruff_cache
