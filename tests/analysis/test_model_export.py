"""The folder that `reasoner export` writes: transformers and vLLM load it, and it answers as the run's model does."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from data.registry import load
from reasoner.analysis.model_export import Export, generation_config, run_template, write_export
from reasoner.cli.main import main
from reasoner.config.schema import EngineConfig
from reasoner.inference.factory import make_engine
from reasoner.models.checksums import write_checksums
from reasoner.rollouts.prompts import TEMPLATES, Template, render
from reasoner.trainer.checkpoint import damage
from reasoner.types import SamplingParams
from tests.fixtures.tiny import END, OTHER_END, tiny_model, tiny_tokenizer
from tests.fixtures.trained_run import trained_run

PROBLEMS = load("generated:heldout", limit=4)
VALUES = {"sampling.max_tokens": 96, "sampling.temperature": 0.9}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return trained_run(tmp_path_factory.mktemp("runs") / "sums", values=VALUES)


@pytest.fixture(scope="module")
def model(run_dir, tmp_path_factory):
    """The export of the last checkpoint, by the command."""
    out = tmp_path_factory.mktemp("out") / "model"
    assert main(["export", str(run_dir), "--out", str(out)]) == 0
    return out


def engine_texts(run_dir):
    """Greedy responses as `reasoner eval` samples them from the checkpoint."""
    template, folder = run_template(run_dir), run_dir / "checkpoints" / "step-000003"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompts = [render(problem, template, tokenizer) for problem in PROBLEMS]
    sampling = SamplingParams(num_samples=1, temperature=0.0, max_tokens=96, stop=template.stop)
    running = make_engine(EngineConfig(name="transformers"), folder, max_model_len=512, seed=0)
    groups = running.generate(prompts, sampling, [[0]] * len(prompts))
    running.close()
    return [completion.text for (completion,) in groups]


def test_export_loads_in_transformers_and_gives_greedy_text_of_engine(run_dir, model):
    tokenizer, policy = AutoTokenizer.from_pretrained(model), AutoModelForCausalLM.from_pretrained(model)
    texts = []
    for problem in PROBLEMS:
        chat = [{"role": "user", "content": problem.question}]
        inputs = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
        output = policy.generate(**inputs, tokenizer=tokenizer, do_sample=False)
        texts.append(tokenizer.decode(output[0, inputs["input_ids"].shape[1] :]).removesuffix(END))
    assert texts == engine_texts(run_dir)
    assert all(text.strip().startswith("<think>") and text.endswith("</answer>") for text in texts)


def test_export_has_the_weights_of_the_checkpoint_and_leaves_it_unchanged(run_dir, model):
    checkpoint = run_dir / "checkpoints" / "step-000003"
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        assert (model / name).read_bytes() == (checkpoint / name).read_bytes()
    assert damage(checkpoint) == ""
    exported, stored = ({path.name for path in folder.iterdir()} for folder in (model, checkpoint))
    assert exported == stored - {"trainer"} | {"README.md", "chat_template.jinja"}


def test_export_of_a_run_in_bfloat16_has_the_weights_that_its_engine_had(tmp_path):
    run_dir = trained_run(tmp_path / "sums", values=VALUES | {"optim.dtype": "bfloat16"})
    export = Export.of(run_dir, "last")
    write_export(export, tmp_path / "model")
    trained, exported = (
        AutoModelForCausalLM.from_pretrained(folder, dtype="auto").state_dict()
        for folder in (export.checkpoint, tmp_path / "model")
    )
    assert {weight.dtype for weight in exported.values()} == {torch.bfloat16}
    assert all(torch.equal(trained[name].bfloat16(), weight) for name, weight in exported.items())


def test_generation_config_samples_as_the_run(model):
    config = GenerationConfig.from_pretrained(model)
    assert (config.temperature, config.do_sample, config.max_new_tokens) == (0.9, True, 96)
    assert (config.top_k, config.top_p) == (0, 1.0)
    assert (config.eos_token_id, config.stop_strings) == ([0], ["</answer>"])


def test_special_stop_text_becomes_an_end_token(tmp_path):
    tokenizer = tiny_tokenizer()
    tiny_model(vocabulary=len(tokenizer), layers=1).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    template = Template("{question}", stop=(OTHER_END, "</answer>", "done"))
    cfg = {"sampling.temperature": 1.0, "sampling.max_tokens": 8}
    config = generation_config(tmp_path, cfg, template, tokenizer)
    assert config["eos_token_id"] == [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids(OTHER_END)]
    assert config["stop_strings"] == ["</answer>", "done"]


@pytest.mark.parametrize(("step", "steps_done"), [("last", 3), ("3", 3), ("best", 2)])
def test_step_names_the_checkpoint(run_dir, step, steps_done):
    assert Export.of(run_dir, step).steps_done == steps_done


def test_base_model_s_chat_template_is_replaced(run_dir, tmp_path):
    export = Export.of(run_dir, "best")
    config = export.checkpoint / "tokenizer_config.json"
    before = config.read_text()
    config.write_text(json.dumps(json.loads(before) | {"chat_template": "{{ 'wrong' }}"}))
    write_checksums(export.checkpoint)
    write_export(export, tmp_path / "model")
    config.write_text(before)
    write_checksums(export.checkpoint)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    chat = [{"role": "user", "content": "1 + 1?"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert text == TEMPLATES["r1-zero"].text.replace("{question}", "1 + 1?")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "nowhere", "--out", "x"], "no run 'nowhere'"),
        (["export", "{run}"], "required: --out"),
        (["export", "{run}", "--out", "{run}"], "exists; name a folder that does not"),
        (["export", "{run}", "--out", "{new}", "--step", "7"], "has no checkpoint '7' (steps done); there are 3, best"),
    ],
)
def test_export_refuses_in_one_line(run_dir, tmp_path, capsys, arguments, message):
    words = [word.format(run=run_dir, new=tmp_path / "new") for word in arguments]
    try:
        status = main(words)
    except SystemExit as stopped:
        status = stopped.code
    errors = capsys.readouterr().err
    assert status == 2 and message in errors and errors.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_damaged_checkpoint_is_refused(tmp_path, capsys):
    run_dir = trained_run(tmp_path / "sums")
    checkpoint = run_dir / "checkpoints" / "step-000003"
    (checkpoint / "model.safetensors").write_bytes(b"x")
    assert main(["export", str(run_dir), "--out", str(tmp_path / "new")]) == 2
    assert "is damaged: model.safetensors not as written" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_prompt_file_that_changed_since_the_run_is_refused(tmp_path):
    prompt = tmp_path / "mine.txt"
    prompt.write_text("Q: {question}")
    run_dir = trained_run(tmp_path / "sums", values={"prompt.style": str(prompt)})
    prompt.write_text("Question: {question}")
    with pytest.raises(ValueError, match="has changed since the run began"):
        write_export(Export.of(run_dir, "last"), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.vllm
@pytest.mark.timeout(900)
def test_vllm_answers_a_chat_of_the_export_as_the_engine_does(run_dir, model, monkeypatch):
    vllm = pytest.importorskip("vllm")
    for name, value in {"KVCACHE_SPACE": "1", "OMP_THREADS_BIND": "nobind"}.items():
        monkeypatch.setenv(f"VLLM_CPU_{name}", value)
    llm = vllm.LLM(str(model), dtype="float32", max_model_len=512, enforce_eager=True)
    length = llm.get_default_sampling_params().max_tokens
    assert length == 96
    stop = {"stop": ["</answer>"], "include_stop_str_in_output": True}
    chats = [[{"role": "user", "content": problem.question}] for problem in PROBLEMS]
    outputs = llm.chat(chats, vllm.SamplingParams(temperature=0, max_tokens=length, **stop))
    llm.llm_engine.engine_core.shutdown()
    tokenizer, template = AutoTokenizer.from_pretrained(model), run_template(run_dir)
    for problem, output in zip(PROBLEMS, outputs, strict=True):
        assert tuple(output.prompt_token_ids) == render(problem, template, tokenizer).token_ids
    assert [output.outputs[0].text for output in outputs] == engine_texts(run_dir)
