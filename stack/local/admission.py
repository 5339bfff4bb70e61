"""What the gateway's admission rules have to know of engines and promises, and where it is kept over a restart."""

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from stack.errors import InputError
from stack.local.configuration import LocalStack
from stack.local.engine.facts import EngineReader
from stack.local.gateway import layout
from stack.local.processes.run_files import write_whole

CAP = "running_request_cap"
FILE = "promise.json"


@dataclass(frozen=True)
class Promise:
    """When the first token is due, which deadline shedding refers to.

    Attributes:
        ttft_s, ttft_s_per_prompt_token: for interactive requests.
        batch_ttft_s: for batch requests.
    """

    ttft_s: float
    ttft_s_per_prompt_token: float
    batch_ttft_s: float = 240.0


def keep(promise: Promise, folder: Path) -> None:
    """Remember the promise in the run folder."""
    write_whole(folder / FILE, json.dumps(asdict(promise)))


def kept(folder: Path) -> Promise | None:
    """The promise remembered; None when none was made yet.

    Raises:
        InputError: the file is damaged.
    """
    path = folder / FILE
    try:
        return Promise(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: expected a promise: {error}; remove it") from error


def numbers(configuration: LocalStack) -> Mapping[str, float]:
    """What a gateway that starts now should know; of an engine that does not answer nothing is known."""
    with closing(EngineReader(configuration)) as engines:
        caps = engines.facts().settings.get(CAP, {})
    found = {f"{layout.SLOTS}{name}": float(cap) for name, cap in caps.items()}
    promise = kept(configuration.run_folder)
    if promise is not None:
        found[layout.TTFT_LIMIT_S] = promise.ttft_s
        found[layout.TTFT_LIMIT_S_PER_TOKEN] = promise.ttft_s_per_prompt_token
        found[layout.BATCH_TTFT_LIMIT_S] = promise.batch_ttft_s
    return found
