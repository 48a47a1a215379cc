"""Tests the metrics of a name server."""

from mqproof.impl.namesrv.config import NameServerConfig
from mqproof.impl.namesrv.namesrv_metrics import NameServerMetrics
from mqproof.impl.namesrv.server import NameServer
from tests.impl.metrics.scrapes import page_of, value
from tests.impl.world import World, play


def test_brokers_and_topics_are_counted() -> None:
    async def scenario(world: World) -> str:
        return await page_of(world.runtime, namesrv=NameServerMetrics(world.namesrv))

    page = play(scenario)
    assert value(page, "mqproof_namesrv_brokers", node_type="nameserver") == 1
    assert value(page, "mqproof_namesrv_topics") > 5
    assert value(page, "mqproof_ready", server="namesrv") == 1
    for name in ("mqproof_namesrv_brokers", "mqproof_namesrv_topics"):
        assert f"# TYPE {name} gauge" in page


def test_a_name_server_that_does_not_listen_is_not_ready() -> None:
    async def scenario(world: World) -> tuple[str, str]:
        source = NameServerMetrics(NameServer(NameServerConfig(), world.runtime))
        return source.unready(), await page_of(world.runtime, namesrv=source)

    why, page = play(scenario)
    assert why == "starting or stopping"
    assert value(page, "mqproof_ready", server="namesrv") == 0
