FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install -y --no-install-recommends haproxy prometheus && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/flashvector
COPY requirements.lock pyproject.toml README.md LICENSE NOTICE ./
RUN python -m pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
RUN python -m pip install --no-cache-dir --no-deps --no-build-isolation --editable .
