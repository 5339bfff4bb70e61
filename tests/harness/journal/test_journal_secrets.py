"""No secret is written into a row or the log, whoever says it; and the chain is over what is written."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from scripted_stack import weight_action

from harness.approval import Edit, Reject
from harness.journal.audit import audit
from harness.journal.journal import Journal
from harness.journal.lease import Lease
from harness.journal.record import Permit, State, Step
from harness.journal.schema import METADATA
from harness.journal.store import open_store
from harness.mode import Mode
from harness.verdict import RuleResult, Ruling, Verdict
from stack.redaction import REDACTED, keep_secret

SECRET = "canary-journal-7b1c"
ALLOW = Verdict((RuleResult("authority", Ruling.ALLOW, f"auto, said {SECRET}"),))
ASK = Verdict((RuleResult("authority", Ruling.ASK, f"approve mode, said {SECRET}"),))


def test_no_row_and_no_line_holds_a_secret(place: Path | str):
    keep_secret(SECRET)
    with closing(open_store(place)) as store:
        journal = Journal(store, lease=Lease.take(store, "stack"))
        action = replace(weight_action(), reason=f"because {SECRET}", comment=SECRET)
        for decision in (Reject(f"olga {SECRET}", SECRET), Edit(SECRET, 80.0)):
            waiting = journal.propose(action, ASK, mode=Mode.APPROVE, now_s=1.0)
            if isinstance(decision, Edit):
                journal.edit(waiting.id, decision, ASK, now_s=2.0)
            else:
                journal.decide(waiting.id, decision, now_s=2.0)
        made = journal.propose(action, ALLOW, mode=Mode.AUTO, now_s=3.0)
        journal.note(made.id, "write_failed", 3.0, {"error": [SECRET]})
        journal.end(made, State.NOTHING_DONE, 4.0, f"the stack said {SECRET}", holds=SECRET)
        journal.freeze(SECRET, by=SECRET, now_s=5.0)
        with store.begin() as connection:
            rows = [
                dict(row) for table in METADATA.tables.values() for row in connection.execute(table.select()).mappings()
            ]
        written = json.dumps(rows, default=str)
        assert SECRET not in written and written.count(REDACTED) > 10
        assert journal.frozen() == REDACTED and audit(store).broken is None


def test_an_undo_is_stored_as_it_is_even_where_it_spells_a_secret(place: Path | str):
    keep_secret("least-loaded-7b1c")
    with closing(open_store(place)) as store:
        journal = Journal(store, lease=Lease.take(store, "stack"))
        made = journal.propose(weight_action(), ALLOW, mode=Mode.AUTO, now_s=3.0)
        steps = (Step("r0", "least-loaded-7b1c", "hash"),)
        journal.arm(made.id, Permit(steps, ALLOW, state_version=0), 4.0)
        permit = journal.record(made.id).permit
        assert permit is not None and permit.steps == steps
        assert audit(store).broken is None
