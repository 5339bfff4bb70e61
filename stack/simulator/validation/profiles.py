"""Fitted profiles of all generations in some rows, and which one stands for a generation that is not among them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from stack.errors import InputError
from stack.simulator.hardware.overhead import EngineProfile, KernelScale
from stack.simulator.validation.case import Case
from stack.simulator.validation.fit import NOTHING, fitted_profile
from stack.simulator.validation.generations import by_nearness, schedules_asynchronously


@dataclass(frozen=True)
class FittedProfiles:
    """Profiles by generation.

    Attributes:
        rows: how many rows each was fitted on.
    """

    by_generation: Mapping[str, EngineProfile]
    rows: Mapping[str, int]

    def source_of(self, generation: str) -> str:
        """The generation whose constants are used for `generation`.

        Raises:
            InputError: nothing was fitted.
        """
        if not self.by_generation:
            raise InputError("no row is left to fit on; see the reasons for which rows are left out")
        return by_nearness(generation, self.by_generation)[0]

    def profile_for(self, generation: str) -> EngineProfile:
        """The constants for a generation; how it schedules follows its own version, whosever the constants are.

        Kernel families that the generation has no rows of come from the nearest generation that has.
        """
        profile = self.by_generation[self.source_of(generation)]
        kernels = _joined([self.by_generation[name] for name in by_nearness(generation, self.by_generation)])
        return replace(profile, kernels=kernels, async_lag=schedules_asynchronously(generation))


def fitted_profiles(cases: Iterable[Case]) -> FittedProfiles:
    """One profile per generation in the rows.

    The generation with most rows is fitted first; what it says of kernels is believed of the next ones beforehand.
    """
    rows: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        rows[case.generation].append(case)
    fitted: dict[str, EngineProfile] = {}
    for generation in sorted(rows, key=lambda name: (-len(rows[name]), name)):
        believed = replace(NOTHING, kernels=_joined([fitted[name] for name in by_nearness(generation, fitted)]))
        fitted[generation] = fitted_profile(rows[generation], believed)
    return FittedProfiles(fitted, {generation: len(found) for generation, found in rows.items()})


def _joined(profiles: Iterable[EngineProfile]) -> tuple[KernelScale, ...]:
    """The kernel scales of all, each family from the first profile that has it."""
    kernels: tuple[KernelScale, ...] = ()
    for profile in profiles:
        known = {scale.family for scale in kernels}
        kernels += tuple(scale for scale in profile.kernels if scale.family not in known)
    return kernels
