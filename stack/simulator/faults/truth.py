"""What is so and cannot be read from metrics: kept by the simulation, never handed to a reader or a forecast."""

from dataclasses import dataclass, field, replace

from stack.reading import Reading
from stack.simulator.faults.fault import Fault


@dataclass
class Truth:
    """Faults in force and to come, and what they do to the metrics.

    Attributes:
        coming: faults that have not begun, in order of time.
        begun: faults in force.
        frozen: engine readings that are repeated for ever, by replica index.
        absent, spoiled: replica indices whose engine tells nothing, or NaN.
        fragmented: restarts that a replica had when its memory became fragmented, by index.
    """

    coming: list[Fault] = field(default_factory=list)
    begun: list[Fault] = field(default_factory=list)
    frozen: dict[int, Reading] = field(default_factory=dict)
    absent: set[int] = field(default_factory=set)
    spoiled: set[int] = field(default_factory=set)
    fragmented: dict[int, int] = field(default_factory=dict)

    def copy(self) -> "Truth":
        """An independent copy."""
        return replace(
            self,
            coming=list(self.coming),
            begun=list(self.begun),
            frozen=dict(self.frozen),
            absent=set(self.absent),
            spoiled=set(self.spoiled),
            fragmented=dict(self.fragmented),
        )
