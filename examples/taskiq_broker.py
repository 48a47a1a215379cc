"""Tasks in the background with taskiq: a message for each task, a group of workers, and redelivery.

A task that a worker did not finish is delivered again, so it can run twice. The label delay_s delays a task.

    pip install 'mqproof[taskiq]'
    mqproof serve --store /tmp/example-store &
    python -m taskiq worker --app-dir examples taskiq_broker:broker &
    python examples/taskiq_broker.py
"""

import asyncio
import os

from mqproof.integrations import TaskiqBroker

NAMESRV = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")

broker = TaskiqBroker(NAMESRV, topic="example_tasks", group="example_workers")
served: list[str] = []
"""What this process has served."""


@broker.task
async def serve(drink: str) -> None:
    served.append(drink)
    print(f"served {drink}", flush=True)


async def main() -> None:
    await broker.startup()
    await serve.kiq("coffee")
    await serve.kicker().with_labels(delay_s=2).kiq("tea")
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
