"""Tests how the statuses of a put are combined.

Source: docs/reference/protocol/replication.md.
"""

import pytest

from mqproof.impl.store.results import PutStatus, put_status

OK, LATE = PutStatus.PUT_OK, PutStatus.FLUSH_DISK_TIMEOUT
NO_SLAVE = PutStatus.SLAVE_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("flush", "replica", "both"),
    [(OK, OK, OK), (LATE, OK, LATE), (OK, NO_SLAVE, NO_SLAVE), (LATE, NO_SLAVE, NO_SLAVE)],
)
def test_a_put_has_the_failure_of_its_replica_or_else_that_of_its_flush(
    flush: PutStatus, replica: PutStatus, both: PutStatus
) -> None:
    assert put_status(flush, replica) is both
