# The CUDA image, from the root of the checkout:
#   docker build -f docker/cuda.Dockerfile -t reasoner:cuda .
#   docker run --rm --gpus all --ipc host -v "$PWD/runs:/work/runs" reasoner:cuda train --model ORG/NAME
# CUDA's libraries come with torch; the host has the driver and NVIDIA's container toolkit.
# Linux x86-64. Every package is the file that requirements-cuda.lock names, the base image the one of its digest.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
FROM ${PYTHON_IMAGE} AS packages
# Triton compiles the launchers of its kernels with gcc.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc g++ libc6-dev libnuma1 \
    && rm -rf /var/lib/apt/lists/*
COPY requirements-cuda.lock /tmp/requirements.lock
RUN pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.lock

FROM packages AS wheel
WORKDIR /source
COPY pyproject.toml setup.py README.md LICENSE ./
COPY app app
COPY data data
COPY reasoner reasoner
COPY verifiers verifiers
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .

FROM packages
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir --no-deps --no-index /wheels/*.whl
RUN useradd --create-home --uid 1000 reasoner && mkdir -p /work/runs && chown -R reasoner /work
USER 1000
WORKDIR /work
EXPOSE 7860
ENTRYPOINT ["reasoner"]
CMD ["--help"]
