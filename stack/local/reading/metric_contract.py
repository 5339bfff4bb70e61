"""What a live stack tells and lets be changed, found by asking it: to be read before anything is decided on it."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx

from stack.absence import unexported
from stack.clock import Clock
from stack.errors import FlashVectorError
from stack.local.configuration import LocalStack, Replica
from stack.local.engine.limits import LIMIT_OF
from stack.local.reading.choice import stale_after_s
from stack.local.reading.device import DeviceProbe
from stack.local.reading.engine_facts import EngineFacts, Page
from stack.local.reading.history import NoPast, Prometheus
from stack.local.reading.scraping import LIMITS, addresses
from stack.reading import GATEWAY, Reading, View
from stack.scrape import scraped
from stack.signal_costs import NOT_EXPORTED
from stack.snapshot import Missing, Signal

OLDEST, NEWEST = (0, 23), (0, 32)
"""First and last minor version of vLLM that metric names and plugin were tested on."""
PLUGIN_SETTINGS = tuple(LIMIT_OF)
PLUGIN_LIMITS = (*PLUGIN_SETTINGS, *LIMIT_OF.values())
"""The plugin's names of what is a setting here; its other limits are not used."""
HISTORY = "prometheus"
MOST_AT_ONCE = 16


@dataclass(frozen=True)
class TargetContract:
    """What one part of the stack keeps of the contract.

    Attributes:
        target: a replica, `GATEWAY` or `HISTORY`.
        found: what answers there, in words; empty where nothing does.
        missing: signals that it does not tell.
        problems: what cannot be read or changed and why, one line each.
    """

    target: str
    found: str
    missing: tuple[Missing, ...] = ()
    problems: tuple[str, ...] = ()


def check(configuration: LocalStack, clock: Clock) -> tuple[TargetContract, ...]:
    """Ask every replica, the gateway and Prometheus. Whatever they answer, nothing is raised."""
    device = DeviceProbe(configuration, clock)
    try:
        with (
            httpx.Client(trust_env=False) as client,
            ThreadPoolExecutor(min(MOST_AT_ONCE, len(configuration.replicas))) as pool,
        ):
            device.look()
            asked = [_Asked(configuration, one, clock, client, device) for one in configuration.replicas]
            engines = tuple(pool.map(_Asked.contract, asked))
            gateway = _gateway(configuration, clock, client)
    finally:
        device.stop()
    return (*engines, gateway, *_history(configuration, clock))


def version_problem(version: str) -> str | None:
    """What follows from a version that nothing here was tested on; None for a tested one."""
    parts = re.match(r"(\d+)\.(\d+)", version)
    if parts is not None and OLDEST <= (int(parts[1]), int(parts[2])) <= NEWEST:
        return None
    span = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    return (
        f"vLLM {version} is outside {span}, which were tested: signals may be missing or mean something else, and "
        f"{', '.join(PLUGIN_SETTINGS)} may not be changeable"
    )


@dataclass(frozen=True)
class _Asked:
    configuration: LocalStack
    replica: Replica
    clock: Clock
    client: httpx.Client
    device: DeviceProbe

    def contract(self) -> TargetContract:
        name, facts = self.replica.name, EngineFacts(self.configuration, self.replica, self.client)
        try:
            found = _scraped(self.configuration, name, self.clock, self.client)
        except FlashVectorError as error:
            return TargetContract(name, "", (), (f"nothing of it can be read: {error}",))
        version, limits = facts.version(), facts.limits()
        said = version.document.get("version")
        problems = [version_problem(said)] if isinstance(said, str) else [f"vLLM's version is unknown: {_why(version)}"]
        problems += [*_plugin_problems(limits)]
        words = f"vLLM {said if isinstance(said, str) else 'of unknown version'}, {_plugin(limits)}"
        missing = self._missing(self.device.added_to(found))
        return TargetContract(name, words, missing, tuple(one for one in problems if one))

    def _missing(self, readings: Sequence[Reading]) -> tuple[Missing, ...]:
        name, no_device = self.replica.name, self.device.reasons.get(self.replica.name, NOT_EXPORTED)
        reasons = {str(Signal.DEVICE_FREE_BYTES): no_device}
        groups = unexported((one for one in readings if one.view is View.ENGINE), gateway=False)
        return tuple(Missing(one.name, name, reasons.get(one.name, NOT_EXPORTED), one.costs) for one in groups)


def _scraped(configuration: LocalStack, target: str, clock: Clock, client: httpx.Client) -> list[Reading]:
    return scraped(addresses(configuration)[target], clock, replica=target, limits=LIMITS, client=client)


def _why(page: Page) -> str:
    return page.problem or "GET /version tells none"


def _plugin(limits: Page) -> str:
    if limits.problem:
        return "plugin absent" if limits.status == httpx.codes.NOT_FOUND else "plugin unusable"
    return f"plugin built on vLLM {limits.document.get('vllm_version', 'of unknown version')}"


def _plugin_problems(limits: Page) -> list[str]:
    if limits.problem:
        return [f"{', '.join(PLUGIN_SETTINGS)} cannot be read or changed: {limits.problem}"]
    problems = []
    if limits.document.get("degraded"):
        problems.append("the plugin failed and runs with the limits of the start, until the next change")
    unsupported = limits.document.get("unsupported")
    if isinstance(unsupported, dict):
        problems += [f"{name} cannot be changed: {why}" for name, why in unsupported.items() if name in PLUGIN_LIMITS]
    return problems


def _gateway(configuration: LocalStack, clock: Clock, client: httpx.Client) -> TargetContract:
    try:
        readings = _scraped(configuration, GATEWAY, clock, client)
    except FlashVectorError as error:
        return TargetContract(GATEWAY, "", (), (f"nothing of it can be read: {error}",))
    servers = {one.replica for one in readings} - {GATEWAY}
    groups = unexported(readings, gateway=True)
    missing = tuple(Missing(one.name, GATEWAY, NOT_EXPORTED, one.costs) for one in groups)
    problems = tuple(
        f"it has no server {name}: the routing of that replica can neither be read nor changed"
        for name in configuration.names
        if name not in servers
    )
    return TargetContract(GATEWAY, f"HAProxy with servers {', '.join(sorted(servers)) or 'none'}", missing, problems)


def _history(configuration: LocalStack, clock: Clock) -> tuple[TargetContract, ...]:
    if configuration.history is None:
        return ()
    prometheus = Prometheus(configuration)
    limit_s = stale_after_s(configuration.history.scrape_interval_s)
    past = prometheus.window(limit_s, clock.now_s(), limit_s)
    prometheus.close()
    if isinstance(past, NoPast):
        costs = "windows come from scrapes of our own, and none is longer than this process lives"
        return (TargetContract(HISTORY, "", (), (f"{past.reason}: {costs}",)),)
    seen = {one.replica for one in past.readings}
    return (TargetContract(HISTORY, f"has fresh samples of {', '.join(sorted(seen))}"),)
