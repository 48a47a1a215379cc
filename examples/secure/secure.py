"""Connect with TLS and an account.

The broker of this folder accepts TLS only and checks the signature of each request. The account `app-orders`
may send to and consume one topic; other topics are refused.

    cd examples/secure
    openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 30 -subj /CN=mqproof
    mqproof serve --tls tls.properties -c broker.conf --store /tmp/example-secure &
    python secure.py

`tls.properties` and `broker.conf` name their files relative to the working directory.
"""

import asyncio
import os

from mqproof import LitePullConsumer, Producer, Refused, Sent, Unknown, connect, new_message
from mqproof.client import Credentials

TOPIC, GROUP = "example_contracts", "example_contracts_readers"
ACCOUNT = Credentials("app-orders", "change-this-key")


async def main(namesrv: str) -> None:
    async with connect(namesrv, tls="tls.properties", credentials=ACCOUNT) as session:
        producer = Producer(session)
        await send(producer, TOPIC)
        await send(producer, "example_salaries")
        async with LitePullConsumer(session, GROUP) as consumer:
            await consumer.subscribe(TOPIC)
            for message in await consumer.poll(timeout_ms=10_000):
                print(f"consumed {message.body.decode()!r}")

    wrong = Credentials(ACCOUNT.access_key, "a wrong secret")
    async with connect(namesrv, tls="tls.properties", credentials=wrong) as session:
        print("with a wrong secret key:")
        await send(Producer(session), TOPIC)
    async with connect(namesrv, credentials=ACCOUNT) as session:
        print("without TLS:")
        await send(Producer(session), TOPIC)


async def send(producer: Producer, topic: str) -> None:
    match await producer.send(new_message(topic, b"signed")):
        case Sent(queue=queue):
            print(f"{topic}: stored in {queue}")
        case Refused(status=status, remark=remark):
            print(f"{topic}: refused, {status}: {remark}")
        case Unknown(remark=remark):  # a broker reports a missing permission as an internal error
            print(f"{topic}: not confirmed: {remark}")


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876")))
