"""The model inside vLLM, without vLLM."""

import torch
from torch import nn
from transformers import LlamaConfig

from reasoner.inference.vllm_model import mask_ids


class Model(nn.Module):
    """vLLM's model: four logits, of which the last has no text."""

    config = LlamaConfig(vocab_size=4)
    num_calls = 0

    def compute_logits(self, states):
        self.num_calls += 1
        return torch.zeros(len(states), 4)


def test_ids_without_text_are_masked_once_however_often_a_server_is_asked():
    model = Model()
    for _ in range(2000):  # admissions, more than a stack has room for
        mask_ids(model, 3)
    assert model.compute_logits(torch.zeros(1, 2)).tolist() == [[0, 0, 0, -torch.inf]]
    assert model.num_calls == 1
