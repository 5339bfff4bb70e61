"""What the execution profiles of the catalogue do to an engine, beside taking a restart."""

from dataclasses import dataclass

from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware import model_named

EAGER_MS_PER_LAYER = 0.25
"""About a dozen kernel launches and their Python per layer that CUDA graphs save; an assumption, not measured here."""
FP8_ATTENTION_SCALE = 0.6
"""Half the KV bytes to read, plus conversion; an assumption, not measured here."""


@dataclass(frozen=True)
class ProfileEffect:
    """Figures of an engine under one execution profile.

    Attributes:
        step_ms: host time per step.
        kv_blocks: blocks that fit.
        attention_scale: factor on decode attention time.
    """

    step_ms: float
    kv_blocks: int
    attention_scale: float


def effect_of(profile: str, fleet: FleetSpec) -> ProfileEffect:
    """The figures of `fleet`'s engines under the profile. Nothing speculates, so `no_speculation` is `default`."""
    step_ms, blocks = fleet.overhead.step_ms, fleet.blocks_per_replica
    if profile == "eager":
        return ProfileEffect(step_ms + EAGER_MS_PER_LAYER * model_named(fleet.model).layers, blocks, 1.0)
    if profile == "fp8_kv":
        return ProfileEffect(step_ms, 2 * blocks, FP8_ATTENTION_SCALE)
    return ProfileEffect(step_ms, blocks, 1.0)
