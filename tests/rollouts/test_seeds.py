from itertools import product

from reasoner.rollouts.seeds import sample_seed


def test_sample_seeds_are_distinct_for_distinct_arguments_and_evaluations_and_have_63_bits():
    assert sample_seed(0, 3, "a/b/1", 2) == sample_seed(0, 3, "a/b/1", 2)
    seeds = [sample_seed(*key) for key in product(range(4), range(12), ("a/1", "a/11", "a"), range(1, 12))]
    assert len(set(seeds)) == 4 * 12 * 3 * 11
    seeds = [sample_seed(0, 0, "a", sample) for sample in range(1000)]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert sum(seed >= 2**62 for seed in seeds) in range(430, 570)
    assert sample_seed(0, "selection", "a", 0) != sample_seed(0, "held-out", "a", 0)
