"""Whether a service does what it is for. vLLM's `/health` says nothing of the engine behind it: we ask for a token."""

from collections.abc import Mapping

import httpx

from stack.local.processes.heartbeat import Progress, progress

TIMEOUT = httpx.Timeout(10.0, connect=1.0)


def completion_trouble(url: str, model: str, access: Mapping[str, str]) -> str | None:
    """Why the engine at `url` does not serve; None when it completes a prompt by one token, or others' meanwhile."""
    before = progress(url, access)
    document = {"model": model, "prompt": "a", "max_tokens": 1, "temperature": 0}
    try:
        answer = httpx.post(f"{url}/v1/completions", json=document, timeout=TIMEOUT, trust_env=False)
    except httpx.HTTPError as error:
        if isinstance(error, httpx.ReadTimeout) and _advanced(before, progress(url, access)):
            return None
        return f"{url} does not complete a prompt: {error or type(error).__name__}"
    if answer.status_code != httpx.codes.OK:
        return f"{url} answers a prompt with {answer.status_code}: {answer.text[:200]}"
    return None


def _advanced(before: Progress | None, after: Progress | None) -> bool:
    return before is not None and after is not None and after.working and after.mark != before.mark


def page_trouble(url: str) -> str | None:
    """Why a GET of `url` does not answer 200; None when it does."""
    try:
        status = httpx.get(url, timeout=TIMEOUT, trust_env=False).status_code
    except httpx.HTTPError as error:
        return f"{url} does not answer: {error or type(error).__name__}"
    return None if status == httpx.codes.OK else f"{url} answers {status}"
