"""The failures of a run: their counts and examples are those of the rules."""

from collections import Counter

from reasoner.analysis.failures import Response, failure_of
from tests.app.library_of import STEPS, until

COLUMNS = ("completion", "gold", "verifier", "verdict", "extracted", "finish")


def test_the_page_counts_what_the_rules_find_and_has_the_latest_examples_of_a_cause(call, rows):
    failures = {row["name"]: failure_of(Response(*(row[name] for name in COLUMNS))) for row in rows}
    causes = {name: failure.cause for name, failure in failures.items() if failure is not None}
    assert until(lambda: call("failures", run="whole", limit=0)["num_analyzed"] == STEPS)
    page = call("failures", run="whole")
    assert {name: n for name, n in page["totals"].items() if n} == Counter(causes.values())
    for line in page["timeline"]:
        own = Counter(cause for name, cause in causes.items() if name.startswith(f"{line['step']}."))
        assert {name: n for name, n in line["causes"].items() if n} == own and line["rollouts"] == 12
    for cause in set(causes.values()):
        names = [name for name, one in causes.items() if one == cause]
        examples = call("failures", run="whole", cause=cause)["examples"]
        assert [one["name"] for one in examples] == names[::-1][:12]
        assert call("rollouts", run="whole", where={"failure": cause})["total"] == len(names)
