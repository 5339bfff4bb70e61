import importlib
import logging
import sys

import pytest
import vllm
from fake_engine import Engine, Setup, make_scheduler
from flashvector_vllm import fit, plugin
from flashvector_vllm.fit import MisfitError, check_version, probe
from flashvector_vllm.plugin import GET_STATE, SET_LIMITS, register
from vllm.v1.core.sched.scheduler import Scheduler


@pytest.mark.parametrize("version", ["0.23.0", "0.26.0", "0.32.0", "0.32.1.dev3+gabc.cpu", "0.28.1rc1"])
def test_tested_versions_pass(version):
    check_version(version)


@pytest.mark.parametrize("version", ["0.22.1", "0.8.5", "0.33.0", "0.33.0rc1", "1.0", "dev", ""])
def test_other_versions_are_refused_in_one_line(version):
    with pytest.raises(MisfitError) as caught:
        check_version(version)
    assert f"expected vLLM 0.23 to 0.32, found {version};" in str(caught.value) and "\n" not in str(caught.value)


def test_an_untested_version_may_be_tried_but_is_probed(monkeypatch):
    monkeypatch.setenv(fit.OVERRIDE, "1")
    check_version("0.33.0")
    monkeypatch.delattr(Scheduler, "_preempt_request")
    with pytest.raises(MisfitError, match=r"expected Scheduler\._preempt_request as in .* not found in vLLM 0\.33\.0"):
        probe("0.33.0")


def test_the_scheduler_module_does_not_load_beside_a_doctored_version(monkeypatch):
    monkeypatch.setattr(vllm, "__version__", "0.99.0")
    monkeypatch.delitem(sys.modules, "flashvector_vllm.scheduler", raising=False)
    with pytest.raises(ImportError, match=r"expected vLLM 0\.23 to 0\.32, found 0\.99\.0"):
        importlib.import_module("flashvector_vllm.scheduler")


def test_a_scheduler_without_a_needed_attribute_does_not_start(model, monkeypatch):
    monkeypatch.setattr(Scheduler, "__init__", _start_without(Scheduler.__init__, "waiting"))
    with pytest.raises(MisfitError, match=r"expected scheduler\.waiting as in vLLM .*, not found in vLLM"):
        make_scheduler(Setup(), model, asynchronous=False)


def _start_without(start, name):
    def doctored(self, *args, **kwargs):
        start(self, *args, **kwargs)
        delattr(self, name)

    return doctored


def test_the_general_plugin_adds_its_methods_and_can_be_called_again(monkeypatch):
    from vllm.v1.engine.core import EngineCore

    register()
    register()
    assert callable(getattr(EngineCore, SET_LIMITS)) and callable(getattr(EngineCore, GET_STATE))


def test_the_general_plugin_leaves_a_misfit_alone_and_says_so(monkeypatch, caplog):
    from vllm.v1.engine.core import EngineCore

    for name in (SET_LIMITS, GET_STATE):
        if hasattr(EngineCore, name):
            monkeypatch.delattr(EngineCore, name)
    monkeypatch.setattr(vllm, "__version__", "0.99.0")
    monkeypatch.setattr(plugin.logger, "propagate", True)
    plugin.logger.addHandler(caplog.handler)
    with caplog.at_level(logging.ERROR):
        register()
    plugin.logger.removeHandler(caplog.handler)
    assert "found 0.99.0" in caplog.text and not hasattr(EngineCore, SET_LIMITS)


def test_the_methods_say_so_when_another_scheduler_runs(model):
    engine = type("Core", (), {"scheduler": Engine(Setup(), model, cls=Scheduler).scheduler})
    expected = "expected --scheduler-cls flashvector_vllm.scheduler.TunableScheduler"
    assert plugin._get_state(engine)["not_tunable"].startswith(expected)
    assert plugin._set_limits(engine, {"reset": True})["not_tunable"].endswith("sched.scheduler.Scheduler")
