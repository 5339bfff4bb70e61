"""The layers of a serving stack, in the order in which a request meets them."""

from enum import StrEnum


class Layer(StrEnum):
    """Where a bottleneck can sit. `EXTERNAL` is never tunable: hardware, kernels, network, proxies, code bugs."""

    ROUTING = "routing"
    BATCHING = "batching"
    CACHE = "cache"
    EXECUTION = "execution"
    MEMORY = "memory"
    OBSERVABILITY = "observability"
    DATA_PATH = "data_path"
    MODEL_ROUTING = "model_routing"
    EXTERNAL = "external"
