"""Reference bands: what they hold, who is outside of them, and the files."""

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from reasoner.cli.main import main
from reasoner.config.recipes import RECIPES
from reasoner.config.resolve import resolve, to_dict
from reasoner.runs import reference as references
from reasoner.runs.bands import FIRST_STEP, LINEAR, LOGARITHMIC, SECONDS, Departure, band_of, departures
from reasoner.runs.reference import REFERENCE, compare_run, make_reference, read_reference, write_reference
from reasoner.runs.run_dir import FORMAT

STEPS = 24
REFERENCES = Path(__file__).parents[2] / "reasoner" / "references"
PRINTS = {"model": "m", "prompt.style": "p", "data.train": "d"}


def curve(seed: int, *, steps: int = STEPS, factor: float = 1.0, shift: float = 0.0) -> list[dict[str, float]]:
    """A run that learns, with the noise of its seed; all logarithmic metrics times `factor`, shares plus `shift`."""
    noise = random.Random(seed)
    lines = []
    for step in range(steps):
        share = 0.9 * step / steps + noise.gauss(0.05, 0.02) + shift
        line = {"step": step, SECONDS: 2.0 + noise.random()}
        line |= dict.fromkeys(LINEAR, share)
        line |= {name: factor * (1 + step) ** 0.5 * noise.lognormvariate(0, 0.1) for name in LOGARITHMIC}
        lines.append(line)
    return lines


def write_run(folder: Path, seed: int, lines: list[dict[str, float]] | None = None, **changes: object) -> Path:
    folder.mkdir(parents=True)
    config = {
        "seed": seed, "model": "base", "optim.lr": 1e-3, "algo.name": "grpo", "reward.format": 0.2, "steps": STEPS,
    }  # fmt: skip
    stored = {"format": FORMAT, "config": config | changes, "fingerprints": PRINTS}
    stored["origin"] = {"optim.lr": "preset base"}
    (folder / "config.json").write_text(json.dumps(stored))
    lines = curve(seed) if lines is None else lines
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.mark.parametrize("file", sorted(REFERENCES.glob("*.json")), ids=lambda path: path.stem)
def test_settings_of_a_reference_are_those_of_its_preset_today(file: Path) -> None:
    """One that has gone, or has another default, would set every run apart."""
    reference = read_reference(file)
    values = {"model": reference.preset} | dict(RECIPES[reference.preset].cpu or {})
    config = to_dict(resolve([("preset", values)]).config)
    assert {key: config.get(key) for key in reference.settings} == reference.settings


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    return [write_run(tmp_path / f"seed-{seed}", seed) for seed in range(6)]


@pytest.fixture(scope="module")
def bands():
    return {name: band_of(name, [curve(seed) for seed in range(8)]) for name in (*LINEAR, *LOGARITHMIC)}


def test_a_band_holds_the_runs_that_it_is_made_of_and_all_but_one_of_forty_new_seeds(bands):
    assert not any(departures(curve(seed), bands) for seed in range(8))
    assert sum(bool(departures(curve(100 + seed), bands)) for seed in range(40)) <= 1


@pytest.mark.parametrize(("change", "metrics", "direction"), [
    ({"factor": 3.0}, LOGARITHMIC, "high"), ({"factor": 0.3}, LOGARITHMIC, "low"),
    ({"shift": 0.4}, LINEAR, "high"), ({"shift": -0.4}, LINEAR, "low"),
])  # fmt: skip
def test_a_shifted_run_is_outside_from_its_first_compared_step(bands, change, metrics, direction):
    found = departures(curve(50, **change), bands)
    assert {one.metric for one in found} == {*metrics}
    assert {(one.step, one.direction) for one in found} == {(FIRST_STEP, direction)}


def test_one_spike_a_step_without_a_metric_and_steps_beyond_the_reference_are_no_departure(bands):
    lines = curve(50)
    lines[9] |= dict.fromkeys(LOGARITHMIC, 1e6)
    assert departures(lines, bands) == []
    lines = [*curve(50), dict.fromkeys((*LINEAR, *LOGARITHMIC), 1e9) | {"step": STEPS}]
    del lines[12]["kl"]
    assert departures(lines, bands) == []


def test_steps_without_a_finite_value_do_not_count_before_the_first_one_either(bands):
    lines = curve(50)
    for line in lines[:3]:
        del line["entropy"]
    assert departures(lines, bands) == []
    lines = curve(50, factor=3.0)
    lines[2]["kl"] = math.nan
    assert {one.step for one in departures(lines, bands)} == {FIRST_STEP}


def test_a_metric_that_the_last_step_lacks_has_a_band(runs, tmp_path):
    lines = curve(9)
    del lines[-1]["kl"]
    assert "kl" in make_reference([*runs, write_run(tmp_path / "nine", 9, lines)]).bands


def test_the_file_of_a_reference_holds_it_to_four_digits(runs, tmp_path):
    reference = make_reference(runs)
    write_reference(tmp_path / "r.json", reference)
    read = read_reference(tmp_path / "r.json")
    assert replace(read, bands={}) == replace(reference, bands={})
    assert (read.preset, read.seeds, read.num_steps) == ("base", (0, 1, 2, 3, 4, 5), STEPS)
    for name, band in reference.bands.items():
        for side in ("mean", "low", "high"):
            assert getattr(read.bands[name], side) == pytest.approx(getattr(band, side), rel=1e-3, abs=1e-12)


def test_runs_of_different_recipes_or_of_one_seed_make_no_reference(runs, tmp_path):
    with pytest.raises(ValueError, match=r"seed-0 differ in optim\.lr"):
        make_reference([*runs, write_run(tmp_path / "other", 9, **{"optim.lr": 1e-2})])
    with pytest.raises(ValueError, match="0, 1, 2, 3, 4, 5, 5"):
        make_reference([*runs, write_run(tmp_path / "again", 5)])
    with pytest.raises(ValueError, match="not 3"):
        make_reference(runs[:3])
    with pytest.raises(ValueError, match="not 2"):
        make_reference([*runs, write_run(tmp_path / "short", 9, curve(9, steps=2))])
    make_reference([*runs, write_run(tmp_path / "fine", 9, **{"threads": 3, "run.name": "x", "steps": 99})])


@pytest.mark.parametrize("content", ["", "{}", '{"format": 9}', '{"format": 1, "bands": {"kl": {"mean": [1]}}}', "[1]"])
def test_a_file_that_is_no_reference_is_named(tmp_path, content):
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(ValueError, match=r"bad\.json"):
        read_reference(tmp_path / "bad.json")
    with pytest.raises(ValueError, match=r"none\.json"):
        read_reference(tmp_path / "none.json")


def test_the_command_makes_a_file_and_the_doctor_compares_a_run_with_it(runs, tmp_path, capsys):
    names = [run.name for run in runs]
    out = tmp_path / "mine.json"
    assert main(["reference", "make", *names, "--runs", str(tmp_path), "--out", str(out)]) == 0
    doctor = ["doctor", "--run.dir", str(tmp_path), "--run.reference", str(out), "--run"]
    write_run(tmp_path / "new", 77)
    assert main([*doctor, "new"]) == 0
    write_run(tmp_path / "hot", 78, curve(78, factor=4.0), **{"optim.lr": 0.5})
    capsys.readouterr()
    assert main([*doctor, "hot"]) == 2
    text = capsys.readouterr().out
    assert "gradient norm" in text and "optim.lr 0.5 (0.001)" in text
    assert main(["doctor", "--run.dir", str(tmp_path), "--run", "new"]) == 2  # no reference for this model
    write_run(tmp_path / "young", 79, curve(79, steps=FIRST_STEP))
    assert main([*doctor, "young"]) == 2  # none of its steps is compared


def test_a_run_is_compared_with_its_own_copy_of_a_reference_also_without_seconds(runs, tmp_path):
    run, reference = write_run(tmp_path / "new", 77), make_reference(runs)
    assert compare_run(run, curve(77)) is None  # this package has none for its model
    write_reference(run / REFERENCE, reference)
    comparison = compare_run(run, curve(77))
    assert comparison.is_inside and comparison.num_steps == STEPS
    bands = {name: band for name, band in reference.bands.items() if name != SECONDS}
    write_reference(run / REFERENCE, replace(reference, bands=bands))
    assert compare_run(run, curve(77)).is_inside


def test_every_cause_is_found_by_its_signs_alone():
    for signs, meaning in references.CAUSES:
        departures = [Departure(name, 5, 2.0 if way == "high" else 0.0, 0.5, 1.0) for name, way in signs.items()]
        assert meaning in references.likely_causes(departures)
        assert meaning not in references.likely_causes(departures[1:])
