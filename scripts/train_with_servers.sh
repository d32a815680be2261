#!/bin/sh
# Starts two vLLM servers on this machine, trains through them, and stops them again. The arguments go to
# `reasoner train`; MODEL, PORT and PYTHON may be set in the environment.
set -eu
cd "$(dirname "$0")/.."
MODEL=${MODEL:-base} PORT=${PORT:-8001}
PYTHON=${PYTHON:-.venv/bin/python}
SECOND=$((PORT + 1))
servers=
trap 'kill $servers 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
for port in "$PORT" "$SECOND"; do
    "$PYTHON" -m reasoner serve --model "$MODEL" --port "$port" 2>"server-$port.log" &
    servers="$servers $!"
done
"$PYTHON" -m reasoner train --model "$MODEL" \
    --engine.urls "http://127.0.0.1:$PORT,http://127.0.0.1:$SECOND" "$@"
