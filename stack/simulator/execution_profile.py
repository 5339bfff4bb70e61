"""What the execution profiles of the catalogue do to an engine, beside taking a restart."""

from dataclasses import dataclass

from stack.errors import InputError
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.gpu import model_named
from stack.simulator.hardware.precision import precision_named

EAGER_MS_PER_LAYER = 0.25
"""About a dozen kernel launches and their Python per layer that CUDA graphs save; an assumption, not measured here."""
FP8_ATTENTION_SCALE = 0.75
"""Half the KV bytes to read, plus conversion. The Llama-3.1 tables in fp8_kv over those in fp8, batches of 8 to 256 and
contexts of 1024 to 32768 tokens: 0.57 to 0.76 on H100, 0.71 to 0.86 on H200, but 1.05 at TP 8 up to 8192 tokens."""


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
    """The figures of `fleet`'s engines under the profile. Nothing speculates, so `no_speculation` is `default`.

    Raises:
        InputError: step times were measured, and another profile's are not known.
    """
    step_ms, blocks = fleet.overhead.step_ms, fleet.blocks_per_replica
    if fleet.measured is not None and profile in ("eager", "fp8_kv"):
        raise InputError(f"step times were measured under the profile in force, those of {profile} are not known")
    if profile == "eager":
        return ProfileEffect(step_ms + EAGER_MS_PER_LAYER * model_named(fleet.model).layers, blocks, 1.0)
    if profile == "fp8_kv" and precision_named(fleet.precision).kv_bytes > 1:
        return ProfileEffect(step_ms, 2 * blocks, FP8_ATTENTION_SCALE)
    return ProfileEffect(step_ms, blocks, 1.0)
