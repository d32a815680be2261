"""The figures of every token: they add up to those of the step, whatever order the rows were computed in."""

import pytest
import torch

from reasoner.rl.batch import collate
from reasoner.rl.token_stats import TOKEN_FIGURES, Tally
from tests.fixtures.tiny import tiny_model
from tests.fixtures.toys import config, group, learner, random_groups


def update(cfg, groups, *, reference=None):
    made = learner(cfg, reference=reference)
    batch = collate(groups)
    tally = Tally(keeps_tokens=True)
    return batch, made.update(made.credit(made.annotate(batch)), tally), tally.tokens


@pytest.mark.parametrize("how", ["token", "sequence", "constant"])
def test_shares_in_the_loss_add_up_to_the_loss_and_kl_and_entropy_to_their_means(how):
    reference = tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False)
    groups = random_groups()
    batch, figures, tokens = update(config(weights=how, beta=0.1, micro=20), groups, reference=reference)
    assert sorted(tokens) == list(range(len(batch)))
    assert all(set(own) == set(TOKEN_FIGURES) for own in tokens.values())
    assert [len(tokens[row]["entropy"]) for row in range(len(batch))] == batch.lengths.tolist()

    def values(name):
        return [value for own in tokens.values() for value in own[name]]

    assert sum(values("loss")) == pytest.approx(figures["loss"], abs=1e-6)
    for name in ("kl", "entropy"):
        assert sum(values(name)) / len(values(name)) == pytest.approx(figures[name], rel=1e-4)


def test_every_figure_belongs_to_its_own_row_and_token():
    """Rows go through in blocks, micro-batches and minibatches; each comes back to where it was collated."""
    groups = random_groups()
    batch, _, tokens = update(config(micro=13, minibatches=2), groups)
    _, _, straight = update(config(), groups)
    first = [row for row in tokens if tokens[row]["entropy"] == pytest.approx(straight[row]["entropy"], abs=1e-5)]
    assert len(first) >= len(batch) // 2  # the first minibatch met the policy that the straight update met
    assert tokens.keys() == straight.keys()


def test_rows_without_a_gradient_have_no_figures():
    flat, mixed = group([5, 6], [[7, 8], [9]], [1.0, 1.0]), group([5, 6], [[7, 8], [9]], [0.0, 1.0])
    _, _, tokens = update(config(group=2), [flat, mixed])
    assert sorted(tokens) == [2, 3]


def test_a_dropped_group_does_not_shift_the_others():
    flat, mixed = group([5, 6], [[7, 8], [9]], [1.0, 1.0]), group([5, 6], [[7, 8, 4], [9]], [0.0, 1.0])
    _, _, tokens = update(config(name="dapo", group=2), [flat, mixed])
    assert {row: len(own["entropy"]) for row, own in tokens.items()} == {2: 3, 3: 1}


def test_several_passes_keep_what_the_first_one_met():
    groups = random_groups()
    _, _, once = update(config(lr=1e-2), groups)
    _, _, twice = update(config(lr=1e-2, epochs=2), groups)
    assert all(torch.allclose(torch.tensor(once[r]["entropy"]), torch.tensor(twice[r]["entropy"])) for r in once)


def test_nothing_is_kept_unless_asked():
    made = learner(config())
    tally = Tally()
    made.update(made.credit(made.annotate(collate(random_groups()))), tally)
    assert tally.tokens == {} and tally.sums["tokens"] > 0
