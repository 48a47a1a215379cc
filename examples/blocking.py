"""Use the client from a program without an event loop, for instance a script or a thread pool.

Each call waits for its result. `send_later` returns a future instead. The listener is a plain function and
runs in a thread of its own.

    mqproof serve --store /tmp/example-store &
    python examples/blocking.py
"""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from mqproof import BlockingClient, ReceivedMessage, Sent, new_message
from mqproof.client import Outcome

TOPIC, GROUP = "example_thumbnails", "example_thumbnails_workers"


def main(namesrv: str) -> None:
    with BlockingClient(namesrv) as client:

        def send(number: int) -> Outcome:
            return client.send(new_message(TOPIC, b"picture %d" % number))

        with ThreadPoolExecutor(4) as threads:  # any thread may use the client
            outcomes = list(threads.map(send, range(8)))
        later = client.send_later(new_message(TOPIC, b"picture 8"))
        outcomes.append(later.result(timeout=30))
        missing = {outcome.message_id for outcome in outcomes if isinstance(outcome, Sent)}
        print(f"sent {len(missing)} messages from several threads")

        finished = threading.Event()
        lock = threading.Lock()

        def listener(messages: Sequence[ReceivedMessage]) -> None:
            with lock:
                missing.difference_update(message.message_id for message in messages)
                if not missing:
                    finished.set()

        with client.consuming(GROUP, {TOPIC: "*"}, listener):
            if not finished.wait(timeout=30):
                raise SystemExit(f"{len(missing)} messages did not arrive")
        print("a listener in threads consumed all of them")

        stored = sum(client.max_offset(queue) for queue in client.queues(TOPIC))
        print(f"the queues of the topic have {stored} messages")


if __name__ == "__main__":
    main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876"))
