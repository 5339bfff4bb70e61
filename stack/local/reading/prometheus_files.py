"""Prometheus' configuration for a local stack, and the command that runs it."""

import json
from pathlib import Path
from typing import Any

from stack.errors import InputError
from stack.local.configuration import History, LocalStack
from stack.reading import GATEWAY
from stack.redaction import place_of

ENGINE_JOB, GATEWAY_JOB = "engine", "gateway"
LARGEST_ANSWER = "64MB"
"""A larger answer of a target counts as a failed scrape."""


def write_files(configuration: LocalStack) -> Path:
    """Write prometheus.yml into the run folder's `prometheus`, which is made if need be.

    Replicas are told apart by the label `instance`, which is their name; the gateway's exporter is `gateway`.

    Returns:
        the file.

    Raises:
        InputError: the configuration has no [stack.history], or the folder cannot be written.
    """
    path = folder(configuration) / "prometheus.yml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # JSON is YAML, and quotes every name safely.
        path.write_text(json.dumps(_document(configuration), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def command(configuration: LocalStack) -> tuple[str, ...]:
    """Program and arguments that run Prometheus on the written files, in the foreground.

    Raises:
        InputError: the configuration has no [stack.history].
    """
    history = _history(configuration)
    here = folder(configuration)
    return (
        history.command,
        f"--config.file={here / 'prometheus.yml'}",
        f"--storage.tsdb.path={here / 'data'}",
        f"--storage.tsdb.retention.time={history.retention}",
        f"--web.listen-address={place_of(history.url)}",
        "--log.level=warn",
    )


def folder(configuration: LocalStack) -> Path:
    """Where Prometheus' files are."""
    return configuration.run_folder.absolute() / "prometheus"


def _history(configuration: LocalStack) -> History:
    if configuration.history is None:
        raise InputError("expected a table [stack.history] that says where Prometheus listens, found none")
    return configuration.history


def _document(configuration: LocalStack) -> dict[str, Any]:
    interval = f"{max(1, round(_history(configuration).scrape_interval_s * 1000))}ms"
    engines = [_target(replica.url, replica.name) for replica in configuration.replicas]
    return {
        "global": {"scrape_interval": interval, "scrape_timeout": interval},
        "scrape_configs": [
            _job(ENGINE_JOB, engines),
            _job(GATEWAY_JOB, [_target(configuration.gateway.metrics_url, GATEWAY)]),
        ],
    }


def _job(name: str, targets: list[dict[str, Any]]) -> dict[str, Any]:
    created = {"source_labels": ["__name__"], "regex": ".+_created", "action": "drop"}
    return {
        "job_name": name,
        "body_size_limit": LARGEST_ANSWER,
        "metric_relabel_configs": [created],
        "static_configs": targets,
    }


def _target(url: str, instance: str) -> dict[str, Any]:
    return {"targets": [place_of(url)], "labels": {"instance": instance}}
