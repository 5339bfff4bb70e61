"""The fleet to simulate: how many replicas of which engine on which hardware."""

from dataclasses import dataclass, field
from functools import cached_property

from stack.errors import InputError
from stack.simulator.engine.layout import Tables
from stack.simulator.hardware.gpu import kv_blocks, model_named, most_kv_blocks
from stack.simulator.hardware.measured import MeasuredSteps
from stack.simulator.hardware.overhead import PROFILES, HostOverhead, kernel_family, scaled
from stack.simulator.hardware.step_times import tables_for
from stack.simulator.switches import Switches


@dataclass(frozen=True, kw_only=True)
class FleetSpec:
    """Facts an operator knows of the own fleet.

    Attributes:
        tensor_parallel: GPUs per replica.
        precision: of weights and KV; see `stack.simulator.hardware.precision`.
        kv_blocks: KV blocks per replica; None derives them from memory and weights (see `hardware.gpu`).
        profile: engine generation, for the host overhead.
        host: the host overhead itself, if it was fitted; None takes the profile's.
        measured: an engine's own step times and KV, in the place of everything said of model, GPU and engine.
        switches: how the engines were started.
        ttft_limit_s, ttft_limit_s_per_token: the limit that the gateway's deadline shedding refers to.
        batch_limit_s: the same for batch requests.
        router_scrape_s: how often the gateway reads the engines.
        restart_s: time from a drained replica's stop to its first request; an assumption for a warm model cache.
    """

    model: str = "llama-3.1-8b"
    gpu: str = "h100"
    tensor_parallel: int = 1
    precision: str = "bf16"
    replicas: int = 4
    kv_blocks: int | None = None
    profile: str = "vllm-0.18"
    host: HostOverhead | None = None
    measured: MeasuredSteps | None = None
    switches: Switches = field(default_factory=Switches)
    ttft_limit_s: float = 1.0
    ttft_limit_s_per_token: float = 1e-4
    batch_limit_s: float = 240.0
    router_scrape_s: float = 1.0
    restart_s: float = 60.0

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated."""
        if self.replicas < 1:
            raise InputError(f"a fleet needs at least one replica, not {self.replicas}")
        if self.profile not in PROFILES:
            raise InputError(f"no engine profile {self.profile!r}; there are {', '.join(PROFILES)}")
        if self.kv_blocks is not None and self.measured is None:
            most = most_kv_blocks(self.model, self.gpu, self.tensor_parallel, self.precision)
            if not 1 <= self.kv_blocks <= most:
                raise InputError(
                    f"kv_blocks must be 1 to {most}, which fill the memory of {self.tensor_parallel} x {self.gpu}, "
                    f"not {self.kv_blocks}"
                )

    @cached_property
    def repository(self) -> str:
        """Name of the model on the public model hub."""
        return self.measured.model if self.measured else model_named(self.model).repository

    @cached_property
    def overhead(self) -> HostOverhead:
        """Host time per step and request, and the kernels' scale."""
        if self.host is not None:
            return self.host
        if self.measured is not None:
            return self.measured.overhead
        family = kernel_family(model_named(self.model), self.precision)
        return PROFILES[self.profile].host(family, self.gpu)

    @cached_property
    def step_times(self) -> Tables:
        """Step times of the model on these GPUs with the kernels of the engine generation, or as measured."""
        if self.measured is not None:
            return self.measured.tables
        return scaled(tables_for(self.model, self.gpu, self.tensor_parallel, self.precision), self.overhead)

    @cached_property
    def blocks_per_replica(self) -> int:
        """KV blocks of one replica under the default execution profile."""
        measured = self.measured.kv_blocks if self.measured else None
        return self.kv_blocks or measured or kv_blocks(self.model, self.gpu, self.tensor_parallel, self.precision)

    @cached_property
    def replica_names(self) -> tuple[str, ...]:
        """Targets of replica settings."""
        return tuple(f"replica-{index}" for index in range(self.replicas))
