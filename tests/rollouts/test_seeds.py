from itertools import product

from reasoner.rollouts.seeds import sample_seed


def test_a_seed_is_a_function_of_its_four_arguments_and_of_nothing_else():
    assert sample_seed(0, 3, "a/b/1", 2) == sample_seed(0, 3, "a/b/1", 2)
    drawn = [sample_seed(*key) for key in product(range(4), range(12), ("a/1", "a/11", "a"), range(1, 12))]
    assert len(set(drawn)) == 4 * 12 * 3 * 11


def test_seeds_have_63_bits():
    drawn = [sample_seed(0, 0, "a", sample) for sample in range(1000)]
    assert all(0 <= seed < 2**63 for seed in drawn)
    assert sum(seed >= 2**62 for seed in drawn) in range(430, 570)


def test_evaluations_have_seeds_of_their_own():
    assert sample_seed(0, "selection", "a", 0) != sample_seed(0, "held-out", "a", 0)
