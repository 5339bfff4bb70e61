"""What an engine generation adds to the step-time tables."""

import numpy as np
import pytest

from stack.simulator.engine.layout import Tables
from stack.simulator.fleet import FleetSpec
from stack.simulator.hardware.overhead import DENSE, PROFILES, EngineProfile, HostOverhead, KernelScale, scaled

HALF = KernelScale(DENSE, "h100", 0.5, 2.0)


def test_kernels_are_scaled_by_hand():
    """One token's 4 ms halve; the 6 ms that further tokens add double."""
    tables = Tables(*(np.array([4.0, 10.0]) for _ in Tables._fields))
    found = scaled(tables, EngineProfile(1.0, 0.0, 0.0, True, (HALF,)).host(DENSE, "h100"))
    assert found.context_ms == pytest.approx([2.0, 14.0])
    assert found.generation_ms == pytest.approx([2.0, 5.0])
    assert found.decode_attention_ms == pytest.approx([2.0, 5.0])
    assert found.prefill_attention_ms == pytest.approx([8.0, 20.0])
    assert (found.tokens == tables.tokens).all()


def test_an_unknown_gpu_takes_the_mean_and_an_unknown_family_the_tables():
    profile = EngineProfile(1.0, 0.0, 0.0, True, (HALF, KernelScale(DENSE, "h200", 0.7, 1.0)))
    assert profile.host(DENSE, "h100").decode_scale == 0.5
    assert profile.host(DENSE, "b200").decode_scale == pytest.approx(0.6)
    assert profile.host("experts in fp8", "h100").decode_scale == 1.0


def test_a_fleet_takes_its_generation_unless_it_is_told_otherwise():
    fleet = FleetSpec(profile="vllm-0.12")
    assert fleet.overhead == PROFILES["vllm-0.12"].host(DENSE, "h100")
    own = HostOverhead(1.0, 0.1, 0.01, False)
    assert FleetSpec(host=own).overhead == own


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_are_physical_and_say_where_they_come_from(name: str):
    profile = PROFILES[name]
    assert 0 <= profile.step_ms < 5
    assert 0 <= profile.sequence_ms < 0.1
    assert 0 <= profile.frontend_s < 0.1
    assert "rows" in profile.provenance
    assert "fitted 20" in profile.provenance
    assert all(0.7 < scale.decode < 1.3 and 0.7 < scale.prefill < 2 for scale in profile.kernels)
