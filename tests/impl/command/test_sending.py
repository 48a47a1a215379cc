"""Tests `mqproof send` in the simulated world."""

from mqproof.impl.command import sending
from mqproof.impl.command.sending import SendJob
from tests.impl.client.members import make_topic
from tests.impl.world import World, play


def send_job(world: World, count: int, batch: int) -> SendJob:
    return SendJob(
        [world.namesrv_address], "T", b"x", {}, count, 3, 3000, until_stored=False, show=None, batch=batch
    )


def test_batches_are_filled_and_every_message_has_an_outcome() -> None:
    async def scenario(world: World) -> tuple[int, set[str]]:
        await make_topic(world)
        summary = await sending.send(send_job(world, 10, 4), world.runtime, None)
        assert summary.outcomes == {"SEND_OK": 10}
        ids, queues = set(), 0
        for queue in await world.consumer.queues("T"):
            messages = (await world.consumer.pull(queue, 0)).messages
            ids |= {stored.message_id for stored in messages}
            queues += bool(messages)
        return queues, ids

    queues, ids = play(scenario)
    assert (queues, len(ids)) == (3, 10)
