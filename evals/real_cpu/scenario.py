"""What is done to a live stack while it is recorded, and what is then true."""

from dataclasses import dataclass

from stack.incident import Truth
from stack.setting import Value


@dataclass(frozen=True)
class Load:
    """Traffic of one `vllm bench serve`.

    Attributes:
        rate_per_s: requests per second, Poisson.
        arguments: what they are like, as that program takes it.
        prompts: head of each prompt, for a dataset of our own; see `evals.real_cpu.prompts`.
    """

    rate_per_s: float
    arguments: tuple[str, ...]
    prompts: str = ""


@dataclass(frozen=True)
class Scenario:
    """One case.

    Attributes:
        name: of the incident's folder.
        loads: traffic, all at once.
        settings: setting, target and value, written before the traffic begins.
        kills: a replica killed a third into the recording.
        engine_arguments: what the engines are started with beside the configuration's own.
        truth: decided before anything was diagnosed.
    """

    name: str
    title: str
    question: str
    loads: tuple[Load, ...]
    truth: Truth
    settings: tuple[tuple[str, str, Value], ...] = ()
    kills: str = ""
    engine_arguments: tuple[str, ...] = ()


def random_load(rate_per_s: float, prompt_tokens: int, output_tokens: int) -> Load:
    """Prompts that share nothing."""
    lengths = ("--random-input-len", str(prompt_tokens), "--random-output-len", str(output_tokens))
    return Load(rate_per_s, ("--dataset-name", "random", *lengths, "--random-range-ratio", "0.3"))


def prefix_load(rate_per_s: float, prefixes: int, prefix_tokens: int, suffix_tokens: int, output_tokens: int) -> Load:
    """Prompts that begin with one of a few heads."""
    numbers = {
        "num-prefixes": prefixes,
        "prefix-len": prefix_tokens,
        "suffix-len": suffix_tokens,
        "output-len": output_tokens,
    }
    lengths = tuple(part for name, n in numbers.items() for part in (f"--prefix-repetition-{name}", str(n)))
    return Load(rate_per_s, ("--dataset-name", "prefix_repetition", *lengths))
