"""Against what nobody here wrote: lm-eval on the same model folder, task and prompts (pip install -e ".[external]").

python -m pytest -m external
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from math import comb

import pytest
import torch

from reasoner.cli.main import main

pytest.importorskip("lm_eval", reason="lm-eval is not installed")
pytestmark = [pytest.mark.external, pytest.mark.timeout(900)]

LETTERS = ["<end>", "<pad>", *"0123456789", *"+=:#AQ ?\n", "-", "x", "y"]
TASK = """\
task: {name}
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
output_type: generate_until
test_split: test
doc_to_text: "Q: {{{{question}}}}\\nA:"
doc_to_target: "{{{{answer.split('####')[-1].strip()}}}}"
repeats: {repeats}
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
generation_kwargs:
  until: ["Q:"]
  do_sample: {sample}
  temperature: {temperature}
  max_gen_toks: 12
filter_list:
{filters}
"""
REGEX = """\
      - function: regex
        regex_pattern: "#### (\\\\-?[0-9\\\\.\\\\,]+)"
"""
FIRST = f"  - name: first\n    filter:\n{REGEX}      - function: take_first\n"
MAJORITY = f"  - name: maj\n    filter:\n{REGEX}      - function: majority_vote\n      - function: take_first\n"


def add_problems():
    return [(a, b) for a in range(20) for b in range(20)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A character-level model that has learnt to add most of the pairs below 20: right some of the time."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("adder")
    core = Tokenizer(models.WordLevel({letter: i for i, letter in enumerate(LETTERS)}, unk_token="<pad>"))
    core.pre_tokenizer, core.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>", pad_token="<pad>")
    config = LlamaConfig(
        vocab_size=len(LETTERS), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=64, bos_token_id=None, eos_token_id=0, pad_token_id=1, tie_word_embeddings=False,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    shuffled = [add_problems()[i] for i in torch.randperm(400).tolist()][:300]
    for step in range(320):
        chosen = [shuffled[(64 * step + i) % 300] for i in range(64)]
        rows = tokenizer([f"Q: {a}+{b}=\nA: #### {a + b}<end>" for a, b in chosen], padding=True, return_tensors="pt")
        labels = rows["input_ids"].masked_fill(rows["input_ids"] == 1, -100)
        loss = model(input_ids=rows["input_ids"], attention_mask=rows["attention_mask"], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval().save_pretrained(path)
    tokenizer.save_pretrained(path)
    asked = [add_problems()[i] for i in torch.randperm(400, generator=torch.Generator().manual_seed(1)).tolist()][:100]
    rows = [{"question": f"{a}+{b}=", "answer": f"#### {a + b}"} for a, b in asked]
    (path / "toy_add.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "prompt.toml").write_text('text = "Q: {question}\\nA:"\nextract = "gsm8k"\nstop = ["Q:"]\n')
    return path


@pytest.fixture(scope="module")
def theirs(folder):
    """(results, samples by task) of lm-eval, greedy and 16 samples each."""
    tasks, out = folder / "tasks", folder / "out"
    tasks.mkdir()
    shared = {"data": folder / "toy_add.jsonl"}
    greedy = {"name": "toy_add", "repeats": 1, "sample": "false", "temperature": 0.0, "filters": FIRST}
    voted = {"name": "toy_add_sc", "repeats": 16, "sample": "true", "temperature": 1.0, "filters": FIRST + MAJORITY}
    for task in (greedy, voted):
        (tasks / f"{task['name']}.yaml").write_text(TASK.format(**shared, **task))
    command = [
        sys.executable, "-m", "lm_eval", "--model", "hf", "--model_args", f"pretrained={folder},dtype=float32",
        "--device", "cpu", "--batch_size", "50", "--tasks", "toy_add,toy_add_sc", "--include_path", str(tasks),
        "--output_path", str(out), "--log_samples", "--seed", "1234",
    ]  # fmt: skip
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    done = subprocess.run(command, env=os.environ | offline, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(next(out.rglob("results_*.json")).read_text())
    return results, {name: next(out.rglob(f"samples_{name}_2*.jsonl")) for name in ("toy_add", "toy_add_sc")}


def evaluation(tmp_path, *arguments):
    assert main(["eval", "--out", str(tmp_path), "--name", "ours", *arguments]) == 0
    return json.loads((tmp_path / "ours" / "results.json").read_text())


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_greedy_texts_score_and_error_are_those_of_lm_eval(folder, theirs, tmp_path, engine):
    if engine == "vllm":
        pytest.importorskip("vllm")
    results, samples = theirs
    data = f"{folder / 'toy_add.jsonl'}?question=question&answer=answer"
    arguments = ["--model", str(folder), "--data", data, "--prompt", str(folder / "prompt.toml"), "--greedy"]
    ours = evaluation(tmp_path, *arguments, "--engine", engine, "--max-tokens", "12")
    rows = [json.loads(line) for line in samples["toy_add"].open()]
    mine = [json.loads(line) for line in (tmp_path / "ours" / "samples_toy_add.jsonl.jsonl").open()]
    their_texts = {row["doc"]["question"]: row["resps"][0][0] for row in rows}
    our_texts = {row["doc"]["question"]: row["resps"][0][0].removesuffix("Q:") for row in mine}  # we keep the stop
    assert our_texts == their_texts and len(our_texts) == 100
    score = results["results"]["toy_add"]
    found = ours["toy_add.jsonl"]["greedy"]["metrics"]["pass@1"]
    assert 0.4 < score["exact_match,first"] < 1  # right some of the time, or it would prove nothing
    assert found["value"] == pytest.approx(score["exact_match,first"], abs=1e-12)
    assert found["se"] == pytest.approx(score["exact_match_stderr,first"], abs=1e-12)


def test_its_samples_file_read_by_us_gives_its_own_figures(theirs, tmp_path):
    results, samples = theirs
    arguments = ["--responses", str(samples["toy_add_sc"]), "--extract", "gsm8k", "--pass@1", "--pass@4", "--cons@16"]
    ours = evaluation(tmp_path, *arguments)
    found = {name: one["value"] for name, one in next(iter(ours.values()))["sampled"]["metrics"].items()}
    rows = {}
    for line in samples["toy_add_sc"].open():
        row = json.loads(line)
        rows.setdefault(row["doc_id"], row)
    targets = [row["target"] for row in rows.values()]
    texts = [row["resps"][0] for row in rows.values()]
    # Its regex takes the number that a line begins with; ours takes the line, so "12-x" is not 12. A few of 1,600.
    assert sum(by_regex(text) != by_line(text) for own in texts for text in own if by_regex(text)) < 16
    right = [[by_line(text) == target for text in own] for own, target in zip(texts, targets, strict=True)]
    assert found["pass@1"] == pytest.approx(sum(map(sum, right)) / 1600)
    assert found["pass@4"] == pytest.approx(sum(1 - comb(16 - sum(r), 4) / comb(16, 4) for r in right) / 100)
    first = sum(by_regex(own[0]) == target for own, target in zip(texts, targets, strict=True)) / 100
    score = results["results"]["toy_add_sc"]
    assert score["exact_match,first"] == pytest.approx(first)
    # Its vote gives a tie to the answer that it saw first; the exact one lies between all ties lost and all ties won.
    for rule, vote in ((by_line, found["cons@16"]), (by_regex, score["exact_match,maj"])):
        best = [most_voted([rule(text) for text in own]) for own in texts]
        lost = sum(leaders == {target} for leaders, target in zip(best, targets, strict=True)) / 100
        won = sum(target in leaders for leaders, target in zip(best, targets, strict=True)) / 100
        assert lost - 1e-9 <= vote <= won + 1e-9
        if lost == won:
            assert vote == pytest.approx(won)


def by_regex(text):
    found = re.search(r"#### (\-?[0-9\.\,]+)", text)
    return found[1] if found else None


def by_line(text):
    _, mark, rest = text.rpartition("####")
    return rest.strip().partition("\n")[0] or None if mark else None


def most_voted(answers):
    """The answers with the most votes; lm-eval lets "[invalid]" vote, too, but it never won here."""
    counts = Counter(answer for answer in answers if answer is not None)
    return {answer for answer, count in counts.items() if count == max(counts.values())}


def test_estimators_agree_with_inspect_ai():
    scorer = pytest.importorskip("inspect_ai.scorer")
    scores = [scorer.Score(value=1.0)] * 3 + [scorer.Score(value=0.0)] * 13
    assert scorer.pass_at(4)(scores).as_float() == pytest.approx(17 / 28)
