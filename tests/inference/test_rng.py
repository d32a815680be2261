import torch

from reasoner.inference.sampling import _mix, _streams, sample_tokens


def test_streams_match_published_splitmix64():
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    outputs = _streams([1234567] * 4, range(4)).view(torch.int64).flatten().tolist()
    assert [x % 2**64 for x in outputs] == published


def test_mixing_matches_murmurhash3_finaliser():
    def finaliser(x: int) -> int:
        x = (x ^ (x >> 16)) * 0x85EBCA6B % 2**32
        x = (x ^ (x >> 13)) * 0xC2B2AE35 % 2**32
        return x ^ (x >> 16)

    assert finaliser(1) == 0x514E28B7  # published
    numbers = [0, 1, 2, 77, 2**31 - 1, 2**31, 2**32 - 1]
    signed = torch.tensor([n - 2**32 if n >= 2**31 else n for n in numbers], dtype=torch.int32)
    assert [x % 2**32 for x in _mix(signed).tolist()] == [finaliser(n) for n in numbers]


def test_draw_frequencies_match_probabilities_also_over_a_large_vocabulary():
    p = torch.tensor([0.5, 0.3, 0.15, 0.05])
    rows = 100_000
    for seeds, positions in ((range(rows), [5] * rows), ([5] * rows, range(rows))):
        counts = sample_tokens(p.log().expand(rows, 4), seeds, positions).bincount(minlength=4)
        assert ((counts - rows * p).abs() < 4 * (rows * p * (1 - p)).sqrt()).all()
    rows, size = 64_000, 640
    counts = sample_tokens(torch.full((rows, size), 1 / size).log(), range(rows), [0] * rows).bincount(minlength=size)
    chi_square = ((counts - 100.0) ** 2 / 100).sum()
    assert abs(chi_square - (size - 1)) < 4 * (2 * (size - 1)) ** 0.5


def test_draws_of_neighbouring_seeds_and_positions_are_independent():
    rows = 100_000
    fair = torch.full((rows, 2), 0.5).log()
    here = sample_tokens(fair, range(rows), [3] * rows)
    for there in (sample_tokens(fair, range(1, rows + 1), [3] * rows), sample_tokens(fair, range(rows), [4] * rows)):
        assert abs((here == there).float().mean() - 0.5) < 4 * 0.5 / rows**0.5


def test_draw_is_independent_of_batch_and_never_an_excluded_token():
    log_softmax = torch.randn(6, 50, generator=torch.Generator().manual_seed(0)).log_softmax(dim=1)
    seeds, positions = [2**63 - 1, 1, 2, 3, 4, 5], [9, 8, 7, 6, 5, 4]
    together = sample_tokens(log_softmax, seeds, positions)
    alone = [sample_tokens(log_softmax[i : i + 1], seeds[i : i + 1], positions[i : i + 1]).item() for i in range(6)]
    assert together.tolist() == alone
    log_softmax = torch.tensor([[-torch.inf, 0.0, -torch.inf]]).expand(5000, 3)
    assert sample_tokens(log_softmax, range(5000), [0] * 5000).unique().tolist() == [1]
