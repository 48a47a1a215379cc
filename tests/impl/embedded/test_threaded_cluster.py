"""A cluster in a thread serves tests without an event loop."""

import pytest

from mqproof import Sent, new_message
from mqproof.impl.embedded.stored_messages import ExpectationError
from mqproof.impl.embedded.threaded_cluster import ThreadedCluster


def test_a_client_outlives_the_master() -> None:
    with ThreadedCluster("dledger") as cluster, cluster.client() as client:
        client.send(new_message("T", b"1"))
        cluster.in_sync()
        stopped = cluster.stop_master()
        assert isinstance(client.send(new_message("T", b"2")), Sent)
        cluster.start_member(stopped)
        assert cluster.running == ["n0", "n1", "n2"]
        assert cluster.master != stopped
        assert sorted(each.body for each in cluster.expect("T", 2)) == [b"1", b"2"]


def test_faults_and_time_reach_the_brokers() -> None:
    with ThreadedCluster() as cluster, cluster.client() as client:
        cluster.fail_next("send", executed=True)
        client.send(new_message("T", b"x", delay_level=5))  # one minute
        with pytest.raises(ExpectationError):
            cluster.expect("T", within_s=0.01)
        cluster.advance(minutes=2)
        assert len(cluster.messages("T")) == 2
        assert len(cluster.messages("T", member="slave")) == 2
