from pathlib import Path

import pytest

from harness.objective import Slo
from harness.policy import Policy
from stack.errors import InputError
from stack.setting import SettingClass


def test_a_fresh_install_may_change_two_settings():
    policy = Policy.load()
    assert policy.enabled == {"routing_weight", "running_request_cap"}
    assert policy.memory.kv_usage_max_ratio == 0.85 and policy.memory.device_free_min_bytes == 2 * 2**30
    assert policy.slo == Slo()


def test_a_file_changes_what_it_names_and_arguments_beat_it(tmp_path: Path):
    file = tmp_path / "policy.toml"
    file.write_text('enabled = ["tokens_per_step"]\n[slo]\nttft_s = 2\n[pace.per_hour]\nA = 9\n')
    policy = Policy.load(file)
    assert policy.enabled == {"tokens_per_step"} and policy.slo.ttft_s == 2 and policy.slo.itl_s == 0.05
    assert policy.pace.per_hour == {"A": 9, "B": 3, "C": 1}
    assert Policy.load(file, enabled=["routing_weight"], slo=Slo(3.0)).slo.ttft_s == 3.0


def test_a_restart_must_be_decided_on_sooner_and_what_is_never_changed_waits_for_nobody(tmp_path: Path):
    policy = Policy.load()
    assert [policy.expiry_s(kind) for kind in SettingClass] == [600.0, 600.0, 300.0, 0.0]
    file = tmp_path / "policy.toml"
    file.write_text("[approval_expiry_s]\nC = 120.0\n")
    assert [Policy.load(file).expiry_s(kind) for kind in SettingClass] == [600.0, 600.0, 120.0, 0.0]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("kv = 1", "kv"),
        ("[memory]\nkv_usage = 0.9", "memory.kv_usage"),
        ("[memory]\nkv_usage_max_ratio = 1.5", "memory.kv_usage_max_ratio"),
        ("[memory]\nkv_usage_max_ratio = nan", "memory.kv_usage_max_ratio"),
        ('[memory]\nkv_usage_max_ratio = "0.9"', "memory.kv_usage_max_ratio"),
        ("[pace]\ncooldown_floor_s = 10", "pace.cooldown_floor_s"),
        ("[evidence]\nage_max_s = 60", "evidence.age_max_s"),
        ('enabled = ["gpu_fan"]', "gpu_fan"),
        ('enabled = "routing_weight"', "enabled"),
        ("[slo]\nttft = 1", "ttft"),
        ("[slo]\nttft_s = -1", "ttft_s"),
        ("slo = 3", "slo"),
        ("[verification]\nlooks_s = [600.0, 300.0]", "looks_s"),
        ("[pace.cooldown_s]\nE = 50", "cooldown_s"),
        ("approval_expiry_s = 600", "approval_expiry_s"),
        ("[approval_expiry_s]\nC = 0", "approval_expiry_s.C"),
        ("enabled = [", "TOML"),
    ],
)
def test_what_is_not_understood_is_named(tmp_path: Path, text: str, key: str):
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        Policy.load(file)
    assert str(file) in str(caught.value) and key in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_or_binary_file_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"none\.toml"):
        Policy.load(tmp_path / "none.toml")
    file = tmp_path / "binary.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary\.toml"):
        Policy.load(file)
