"""Ordered faults hit the next requests of their kind, in order, and no others."""

from typing import cast

import pytest

from mqproof.impl.embedded.request_faults import OPERATIONS, Fault, RequestFaults
from mqproof.impl.remoting.channel import Channel
from mqproof.impl.remoting.codes import RequestCode, ResponseCode
from mqproof.impl.remoting.command import Command
from mqproof.impl.remoting.request_handler import refuse_everything

BUSY = Fault(ResponseCode.SYSTEM_BUSY, "ordered", is_executed=False)


def answers(faults: RequestFaults, *codes: RequestCode) -> list[int]:
    handle = faults.around(refuse_everything)
    replies = [handle(Command(code, opaque=1), cast("Channel", None)) for code in codes]
    return [cast("Command", reply).code for reply in replies]


def test_the_codes_of_a_kind_share_the_ordered_faults() -> None:
    faults = RequestFaults()
    faults.add("send", 2, BUSY)
    normal = ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    codes = (RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE, RequestCode.SEND_MESSAGE)
    assert answers(faults, *codes, RequestCode.SEND_MESSAGE) == [BUSY.code, normal, BUSY.code, normal]
    assert faults.pending("send") == 0


@pytest.mark.parametrize(
    ("operation", "times", "message"),
    [("sent", 1, "'sent' is not a kind of request: expected one of send, pull"), ("pull", 0, "times is 0")],
)
def test_a_wrong_order_is_refused(operation: str, times: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RequestFaults().add(operation, times, BUSY)


def test_no_code_is_of_two_kinds() -> None:
    codes = [code for each in OPERATIONS.values() for code in each]
    assert len(codes) == len(set(codes))
