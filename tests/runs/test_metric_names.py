"""The table of metrics: every place that shows a metric can label it, and docs/METRICS.md is generated from it."""

import ast
from pathlib import Path

from reasoner.runs.metric_names import METRICS, TIMES, markdown, shown_at

ROOT = Path(__file__).parents[2]
ROWS = METRICS | TIMES


def test_table_of_metrics_in_the_docs_is_up_to_date():
    assert (ROOT / "docs" / "METRICS.md").read_text() == markdown(), "make docs"


def test_labels_of_a_place_are_distinct_and_pages_draw_the_metrics_that_the_table_says():
    for place in ("console", "overview", "health", "compare"):
        labels = [row.label for row in shown_at(place)]
        assert labels and len(set(labels)) == len(labels), place
    for place in ("overview", "compare"):
        source = (ROOT / "app" / "static" / "pages" / f"{place}.js").read_text()
        assert [row.name for row in shown_at(place) if f'"{row.name}"' not in source] == [], place


def test_every_metric_is_written_by_a_file_of_the_trainer_or_rl():
    written = set()
    for path in [*(ROOT / "reasoner/trainer").glob("*.py"), *(ROOT / "reasoner/rl").glob("*.py")]:
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        written |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert (METRICS.keys() | TIMES.keys()) - written == set()
