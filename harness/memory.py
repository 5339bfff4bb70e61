"""Memory: what was tried before, weighted by how long ago and in how similar a situation."""

import logging
from dataclasses import asdict, dataclass
from math import exp, log
from typing import Any

from sqlalchemy import insert, select

from harness.journal.record import Record
from harness.journal.schema import EPISODE
from harness.journal.store import Store
from harness.outcome import Ending, Measured
from stack.layer import Layer
from stack.setting import Value

LOG = logging.getLogger(__name__)
DAY_S = 86_400.0
HALF_LIFE_S = 14 * DAY_S
SIMILARITY_MIN = 0.3
"""Below this an episode comes from another world and is dropped."""
OTHER_MODEL, OTHER_GPU, OTHER_ENGINE = 0.2, 0.5, 0.8
REGIME_SCALE = log(4.0)
"""A fourfold difference in one traffic figure costs a factor of e."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Where and under which traffic something happened.

    Attributes:
        engine_version: as the engine states it; empty when unknown.
        requests_per_s, prompt_tokens, output_tokens: the traffic regime: rate of the pool and mean lengths; None when
            not measured.
    """

    model: str
    gpu: str
    engine_version: str
    replicas: int
    requests_per_s: float | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None

    def similarity(self, other: "Environment") -> float:
        """1 for the same environment, towards 0 the more it differs; what is not known on both sides costs nothing."""
        likeness = 1.0 if self.model == other.model else OTHER_MODEL
        likeness *= 1.0 if self.gpu == other.gpu else OTHER_GPU
        likeness *= 1.0 if self.engine_version == other.engine_version else OTHER_ENGINE
        distance = _distance(self.requests_per_s, other.requests_per_s, self.replicas, other.replicas)
        distance += _distance(self.prompt_tokens, other.prompt_tokens)
        distance += _distance(self.output_tokens, other.output_tokens)
        return likeness * exp(-distance / REGIME_SCALE)


@dataclass(frozen=True, kw_only=True)
class Episode:
    """One ended action with its situation."""

    action_id: int
    time_s: float
    cause: str
    layer: Layer
    setting: str
    target: str
    before: Value
    after: Value
    ending: Ending
    reason: str
    measured: Measured | None
    environment: Environment


@dataclass(frozen=True)
class Recalled:
    """An episode, and how much it counts now: 1 for the same situation just now."""

    episode: Episode
    weight: float


class Memory:
    """Episodes in a store; only ever added to."""

    def __init__(self, store: Store, *, half_life_s: float = HALF_LIFE_S) -> None:
        self._store = store
        self._half_life_s = half_life_s

    def remember(self, record: Record, environment: Environment) -> Episode:
        """Store an ended action; storing it again changes nothing.

        Raises:
            ValueError: it has not ended.
        """
        outcome = record.outcome
        if outcome is None:
            raise ValueError(f"action {record.id} is {record.state}: only an ended action is an episode")
        action, found = record.action, outcome.verification
        episode = Episode(
            action_id=record.id,
            time_s=record.proposed_s if record.ended_s is None else record.ended_s,
            cause=action.cause,
            layer=action.layer,
            setting=action.setting,
            target=action.target,
            before=action.before,
            after=action.after,
            ending=outcome.ending,
            reason=outcome.reason,
            measured=None if found is None else found.measured,
            environment=environment,
        )
        row = asdict(episode)
        row.pop("environment")
        with self._store.begin() as connection:
            known = connection.execute(select(EPISODE.c.seq).where(EPISODE.c.action_id == record.id)).first()
            if known is None:
                values = {"action_id": record.id, "time_s": episode.time_s}
                connection.execute(insert(EPISODE).values(**values, episode=row, environment=asdict(environment)))
        return episode

    def recall(
        self,
        environment: Environment,
        *,
        now_s: float,
        cause: str | None = None,
        setting: str | None = None,
        most: int = 10,
    ) -> tuple[Recalled, ...]:
        """Episodes that may teach something here, by weight: half-life decay times similarity of environment.

        Args:
            environment: the present one.
            now_s: stack time.
            cause, setting: only episodes with this cause or setting.
            most: longest answer.
        """
        with self._store.begin() as connection:
            rows = connection.execute(select(EPISODE).order_by(EPISODE.c.seq)).mappings().all()
        recalled = []
        for row in rows:
            episode = _episode(row["episode"], row["environment"])
            if (cause and episode.cause != cause) or (setting and episode.setting != setting):
                continue
            similarity = environment.similarity(episode.environment)
            if similarity < SIMILARITY_MIN:
                LOG.info(
                    "episode of action %s dropped: its environment is too different (similarity %.2f)",
                    episode.action_id,
                    similarity,
                )
                continue
            age_s = max(0.0, now_s - episode.time_s)
            recalled.append(Recalled(episode, 0.5 ** (age_s / self._half_life_s) * similarity))
        return tuple(sorted(recalled, key=lambda r: (-r.weight, -r.episode.action_id))[:most])


def _distance(one: float | None, other: float | None, per_one: int = 1, per_other: int = 1) -> float:
    if one is None or other is None:
        return 0.0
    return abs(log(max(one / max(1, per_one), 1e-3)) - log(max(other / max(1, per_other), 1e-3)))


def _episode(row: dict[str, Any], environment: dict[str, Any]) -> Episode:
    measured = row["measured"]
    return Episode(
        **{
            **row,
            "layer": Layer(row["layer"]),
            "ending": Ending(row["ending"]),
            "measured": None if measured is None else Measured(measured),
            "environment": Environment(**environment),
        }
    )
