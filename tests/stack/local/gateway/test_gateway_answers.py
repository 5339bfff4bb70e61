"""Reading HAProxy's answers, as recorded from 2.6.12."""

import pytest

from stack.errors import UnreachableError
from stack.local.gateway import answers
from stack.local.gateway.answers import Boot, Server

INFO = "Name: HAProxy\nVersion: 2.6.12-1+deb12u4\nPid: 6902\nUptime_sec: 4\nStart_time_sec: 1796044814\nTainted: 0"
STATISTICS = """\
# pxname,svname,qcur,scur,slim,status,weight,uweight,
users,FRONTEND,,3,9978,OPEN,,,
a,r1,1,2,4,UP,50,50,
a,r2,0,0,,DOWN 1/2,100,100,
a,BACKEND,5,2,,UP,150,150,"""
SERVERS = """\
1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight
4 replicas 1 r1 127.0.0.1 2 0 1
4 replicas 2 r2 127.0.0.1 2 8 1
4 replicas 3 r3 127.0.0.1 0 1 1
4 replicas 4 r4 127.0.0.1 2 32 1
5 other 1 r1 127.0.0.1 2 16 1"""


def test_values_are_found():
    assert answers.boot_in(INFO) == Boot(6902, 1796044814)
    assert answers.servers_in(STATISTICS) == {
        "a": {"r1": Server("UP", 4, 50, 2, 1), "r2": Server("DOWN 1/2", 0, 100, 0, 0)}
    }
    assert answers.queued_in(STATISTICS) == 5
    assert answers.entries_in("0x55 limit 5\n0x56 name a value\n") == {"limit": "5", "name": "a value"}


def test_drain_and_maintenance_keep_requests_away_and_other_bits_do_not():
    assert answers.out_of_rotation(SERVERS, "replicas") == {"r2", "r3"}
    assert answers.out_of_rotation(SERVERS, "other") == {"r1"}


@pytest.mark.parametrize("read", [answers.boot_in, answers.servers_in, lambda text: answers.out_of_rotation(text, "a")])
@pytest.mark.parametrize("text", ["", "Permission denied", "Unknown command: 'show'"])
def test_other_text_is_no_answer(read, text: str):
    with pytest.raises(UnreachableError, match="is not HAProxy's"):
        read(text)
