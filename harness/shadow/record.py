"""Scores in a store: each is a row of its own that is written once."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import insert, select

from harness.forecast.rehearsal import Change
from harness.journal.schema import SHADOW_SCORE
from harness.journal.store import Store
from harness.shadow.score import Hindsight, Operator, Played, Score, Unscored


class ShadowRecord:
    """The scores of one stack's decisions, as one planner made them.

    Args:
        stack: whose decisions; those on its replayed traffic count as well.
        planner: who decides: `search` or `llm`.
    """

    def __init__(self, store: Store, *, stack: str, planner: str) -> None:
        self._store, self.stack, self.planner = store, stack, planner

    def add(self, score: Score) -> None:
        """Store a score. The same moment counts once, however often it is replayed."""
        table, key = SHADOW_SCORE, self._key(score)
        with self._store.begin() as connection:
            if connection.execute(select(table.c.seq).where(table.c.key == key)).first() is not None:
                return
            values = {"stack": self.stack, "planner": score.planner, "decided_s": score.decided_s}
            row = asdict(score)
            connection.execute(insert(table).values(key=key, action_id=score.action_id, score=row, **values))

    def scores(self) -> tuple[Score, ...]:
        """All of this planner's scores, in the order of the decisions."""
        return tuple(sorted(self.added_after(0)[1], key=lambda score: score.decided_s))

    def added_after(self, seq: int) -> tuple[int, tuple[Score, ...]]:
        """This planner's scores in rows after number `seq`, in the order of these, and the number of the last one."""
        table = SHADOW_SCORE
        own = (table.c.stack == self.stack, table.c.planner == self.planner, table.c.seq > seq)
        with self._store.begin() as connection:
            rows = connection.execute(select(table.c.seq, table.c.score).where(*own).order_by(table.c.seq)).all()
        return (rows[-1].seq if rows else seq), tuple(_score(row.score) for row in rows)

    def _key(self, score: Score) -> str:
        what = "nothing" if score.setting is None else f"{score.setting} on {score.target}"
        return f"{self.stack} {score.planner} {score.decided_s:.3f} {what}"


def _score(row: Mapping[str, Any]) -> Score:
    hindsight, operator, unscored = row["hindsight"], row["operator"], row["unscored"]
    read = {
        "hindsight": None if hindsight is None else _hindsight(hindsight),
        "operator": None if operator is None else _operator(operator),
        "unscored": None if unscored is None else Unscored(unscored),
    }
    return Score(**{**row, **read})


def _hindsight(row: Mapping[str, Any]) -> Hindsight:
    played = {name: Played(**row[name]) for name in ("nothing", "proposed", "best")}
    change = row["best_change"]
    return Hindsight(**{**row, **played, "best_change": None if change is None else Change(**change)})


def _operator(row: Mapping[str, Any]) -> Operator:
    return Operator(**{**row, "change": Change(**row["change"]), "played": Played(**row["played"])})
