"""Celery with its tasks in RocketMQ: a topic for each queue, a group of workers, and redelivery.

A task that a worker did not finish is delivered again (`task_acks_late`), so it can run twice. The results
are in files here, because the backend `rpc://` needs queues of its own.

    pip install 'mqproof[celery]'
    mqproof serve --store /tmp/example-store &
    python -m celery --workdir examples -A celery_tasks worker --concurrency 2 &
    python examples/celery_tasks.py
"""

import os
import signal
import tempfile
from pathlib import Path

from celery import Celery
from celery.signals import worker_process_init

from mqproof.integrations import register_kombu

NAMESRV = os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")
RESULTS = Path(tempfile.gettempdir()) / "example_celery_results"
RESULTS.mkdir(exist_ok=True)

register_kombu()
app = Celery("celery_tasks", broker=f"rocketmq://{NAMESRV}", backend=f"file://{RESULTS}")
app.conf.update(
    task_acks_late=True,
    task_default_queue="example_celery",
    broker_transport_options={"visibility_timeout": 900},
)


@worker_process_init.connect
def leave_sigterm_to_the_parent(**_: object) -> None:
    """Let the parent alone handle a SIGTERM to the whole process group.

    A child that SIGTERM kills while it waits for a task keeps a lock of Celery's pool, and the parent then
    waits for that lock for ever.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


@app.task
def total(prices: list[int]) -> int:
    """Return the sum of an order."""
    return sum(prices)


if __name__ == "__main__":
    print("total:", total.delay([3, 4]).get(timeout=60))
