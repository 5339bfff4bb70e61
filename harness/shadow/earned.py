"""What a stack's shadow record has earned, kept up to date by what was added to it since it was last asked."""

import threading
from collections.abc import Iterable
from itertools import chain

from harness.journal.reading import JournalReader
from harness.journal.record import Record
from harness.policy import Policy
from harness.shadow.bar import last_harm_s, passed
from harness.shadow.record import ShadowRecord
from harness.shadow.score import Score


class Earned:
    """Tells which settings may act by themselves now.

    A score and an ending never change once they are written, so only new ones are read: a look must not take longer
    the longer the record is.
    """

    def __init__(self, record: ShadowRecord, journal: JournalReader, policy: Policy) -> None:
        self._record, self._journal, self._policy = record, journal, policy
        self._turn = threading.Lock()
        self._score_seq, self._event_seq = 0, 0
        self._scores: list[Score] = []
        self._harmed_s: dict[str, float] = {}
        self._settings: frozenset[str] = frozenset()

    def __call__(self) -> frozenset[str]:
        """Their names.

        Raises:
            StoreError: the record cannot be read.
        """
        with self._turn:
            score_seq, scores = self._record.added_after(self._score_seq)
            event_seq, ended = self._journal.ended_after(self._event_seq)
            self._score_seq, self._event_seq = score_seq, event_seq
            if scores or ended:
                self._learn(scores, ended)
            return self._settings

    def _learn(self, scores: Iterable[Score], ended: Iterable[Record]) -> None:
        self._scores = sorted(chain(self._scores, scores), key=lambda score: score.decided_s)
        for setting, harmed_s in last_harm_s(ended).items():
            self._harmed_s[setting] = max(harmed_s, self._harmed_s.get(setting, harmed_s))
        self._settings = passed(self._scores, self._policy, self._harmed_s)
