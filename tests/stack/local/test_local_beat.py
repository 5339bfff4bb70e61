"""What happens in the background goes on."""

import threading

from stack.local.reading.beat import Beat


def test_a_beat_that_raises_is_not_the_last(caplog):
    beats, enough = [], threading.Event()

    def action() -> None:
        beats.append(1)
        if len(beats) >= 3:
            enough.set()
        raise ValueError("odd")

    beat = Beat(action, 0.01, "odd thing")
    beat.start()
    assert enough.wait(20.0)
    beat.ask_to_stop()
    beat.join(20.0)
    assert beat.wait_for_first(0.0)
    assert "odd thing failed" in caplog.text
