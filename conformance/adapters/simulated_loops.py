"""Ends the event loop of a simulated target, with every task that still runs on it."""

import asyncio


def end(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all tasks of the loop, wait until they ended, and close the loop."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(_ended(tasks))
    loop.close()


async def _ended(tasks: set[asyncio.Task[object]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
