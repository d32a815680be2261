# The CUDA image, from the root of the checkout:
#   docker build -f docker/cuda.Dockerfile -t reasoner:cuda .
#   docker run --rm --gpus all --ipc host -v "$PWD/runs:/work/runs" reasoner:cuda train --model ORG/NAME
# CUDA's libraries come with torch; the host has the driver and NVIDIA's container toolkit.
FROM python:3.11-slim-bookworm AS wheel
WORKDIR /source
COPY pyproject.toml setup.py README.md LICENSE ./
COPY app app
COPY data data
COPY reasoner reasoner
COPY verifiers verifiers
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim-bookworm
# Triton compiles the launchers of its kernels with gcc.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc g++ libc6-dev libnuma1 \
    && rm -rf /var/lib/apt/lists/*
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY constraints-cuda.txt /tmp/constraints.txt
COPY --from=wheel /wheels /wheels
# hadolint ignore=DL3013
RUN pip install --no-cache-dir -c /tmp/constraints.txt vllm "$(echo /wheels/*.whl)[lora]"
RUN useradd --create-home --uid 1000 reasoner && mkdir -p /work/runs && chown -R reasoner /work
USER 1000
WORKDIR /work
EXPOSE 7860
ENTRYPOINT ["reasoner"]
CMD ["--help"]
