"""Texts in headers of both kinds: any characters, empty texts, remarks, languages, and headers of 1 MiB.

See docs/reference/protocol/framing.md, "Remoting command".
"""

import asyncio
import json
import struct
from typing import Any, Final

from mqproof.conformance.adapters.inspections.raw_client import RawClient
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site
from mqproof.conformance.adapters.inspections.strange_brokers import Registrant, body_of, topic
from mqproof.conformance.adapters.inspections.traffic import beat, make_group, make_topic, send, subscription
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import RESPONSE, Frame, Header, encode, entry, framed

_HEADER_MAX: Final = 1 << 20
_VALUE_MAX: Final = 512 << 10
_LANGUAGES: Final = (
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS",
    "RUST", "NODE_JS",
)  # fmt: skip
"""The names of the languages, in the order of their codes in RocketMQ."""
_TEXTS: Final = ("v", "ä", "\u20ac\U0001f600", "a\x01\x02\n", '"\\/', "\x7f", "ä" * 300, "\u3042" * 70_000)
_BOTH: Final = tuple(Header)


async def header_texts(site: Site) -> None:
    site.rule = chapters.REMOTING_COMMAND
    await make_topic(site, "Topic-A")
    await make_group(site, "g")
    await _values(site)
    await _limits(site)
    await _empty_texts(site)
    await _loose_values(site)
    await _languages(site)
    await _remarks(site)


async def _put(site: Site, key: str, value: str, header: Header, expects: int = 0) -> None:
    await site.ask(
        "PUT_KV_CONFIG", expects=expects, to=site.name_server, of_frame={"header": header}, namespace="n",
        key=key, value=value,
    )  # fmt: skip


async def _value(site: Site, key: str, header: Header) -> str | None:
    answer = await site.ask(
        "GET_KV_CONFIG", to=site.name_server, of_frame={"header": header}, namespace="n",
        key=key,
    )  # fmt: skip
    site.compare("the kind of the header of the answer", header, answer.header)
    site.compare(f"the fields of the answer for {key[:9]!r}", {"value"}, set(answer.fields))
    return answer.fields.get("value")


async def _values(site: Site) -> None:
    """Names and values of any characters pass through headers of both kinds."""
    for number, text in enumerate(_TEXTS):
        for written_in in _BOTH:
            key = f"{number} {text[:100]}"
            await _put(site, key, text, written_in)
            for read_in in _BOTH:
                found = await _value(site, key, read_in)
                site.compare(f"the value {text[:9]!r} in {read_in.name}", True, found == text)


async def _limits(site: Site) -> None:
    """An answer whose header would be longer than 1 MiB is an error; it fits in the other kind of header."""
    members = {
        "code": 0, "extFields": {"value": ""}, "flag": 1, "language": "PYTHON", "opaque": 100,
        "serializeTypeCurrentRPC": "JSON", "version": 409,
    }  # fmt: skip
    for more in (0, 1):
        line = await RawClient(site.name_server).open(site.cluster.internet.machine("10.0.1.9"))
        left = _HEADER_MAX - len(json.dumps(members, separators=(",", ":"))) + more
        value = "\x01" * (left // 6) + "a" * (left % 6)
        await _put(site, "long", value, Header.BINARY)
        asked = {"namespace": "n", "key": "long"}
        answer = await line.request(CODES["GET_KV_CONFIG"], asked)
        site.compare(f"the code of a header of 1 MiB and {more} bytes", more, answer.code)
        site.compare("whether it has the value", not more, answer.fields.get("value") == value)
        site.compare("whether it says why", bool(more), bool(answer.remark))
        site.compare("the binary answer", True, await _value(site, "long", Header.BINARY) == value)
        answer = await line.request(CODES["GET_KV_CONFIG"], asked | {"key": "0 v"})
        site.compare("the next answer on the connection", "v", answer.fields.get("value"))
        line.close()
    for size, expects in ((_VALUE_MAX, 0), (_VALUE_MAX + 1, 1)):
        for header in _BOTH:
            await _put(site, "longest", "a" * size, header, expects)


async def _empty_texts(site: Site) -> None:
    """In a binary header an empty text counts as absent; in JSON it is an empty text."""
    queue: dict[str, Any] = {"consumerGroup": "g", "topic": "Topic-A", "queueId": 0}
    for header, of_number, of_text in ((Header.BINARY, 0, 1), (Header.JSON, 1, 0)):
        await site.ask(
            "QUERY_CONSUMER_OFFSET", expects=of_number, of_frame={"header": header}, **queue,
            setZeroIfNotFound="",
        )  # fmt: skip
        await _put(site, "empty", "", header, of_text)
    site.compare("the empty value", "", await _value(site, "empty", Header.JSON))
    answer = await site.ask(
        "GET_KV_CONFIG", to=site.name_server, of_frame={"header": Header.BINARY}, namespace="n", key="empty"
    )
    site.compare("the empty value in a binary header", "", answer.fields.get("value", ""))


async def _loose_values(site: Site) -> None:
    """Values that are no text are read as such, and texts beside them as they are."""
    network = site.cluster.internet.machine("10.0.1.9")
    line = await RawClient(site.broker).open(network)
    await send(site, "Topic-A")
    for at, (queue, code) in enumerate(((0, 0), ("0", 0), (0.5, 1), (True, 1), (None, 1))):
        members = {"code": CODES["GET_MAX_OFFSET"], "opaque": at, "version": 409,
                   "extFields": {"topic": "Topic-A", "queueId": queue, "x": 1}}  # fmt: skip
        waiting = line.expect(at)
        line.write(framed(json.dumps(members).encode()))
        answer = await waiting
        site.compare(f"the code for queue {queue!r}", code, answer.code, answer.remark)
        site.compare(f"the end of queue {queue!r}", None if code else "1", answer.fields.get("offset"))
    one = Registrant(site, "Broker-B")
    await one.register(body_of([topic("T")]))
    to_names = await RawClient(site.name_server).open(network)
    for at, (given, is_standard) in enumerate(((True, True), ("true", True), (False, False), (None, False))):
        members = {"code": CODES["GET_ROUTEINFO_BY_TOPIC"], "opaque": at, "version": 300,
                   "extFields": {"topic": "T", "acceptStandardJsonOnly": given, "x": 1}}  # fmt: skip
        waiting = to_names.expect(at)
        to_names.write(framed(json.dumps(members).encode()))
        answer = await waiting
        site.compare(f"whether a route is standard JSON with {given!r}", is_standard, b'{"0":' in answer.body)
    await one.ask("UNREGISTER_BROKER")


async def _languages(site: Site) -> None:
    """A broker shows the language and the version of its clients."""
    names = {-1: None, **dict(enumerate(_LANGUAGES)), len(_LANGUAGES): None, 127: None}
    versions = (0, 1, 409, (1 << 15) - 1)
    lines, expected = [], {}
    for at, (code, name) in enumerate(names.items()):
        line, version, client = await site.client(f"language {code}"), versions[at % 4], f"c{code}"
        lines.append(line)
        body = json.dumps({"clientID": client, "producerDataSet": [{"groupName": "makers"}]}).encode()
        fixed = struct.pack(">hbhiii", CODES["HEART_BEAT"], code, version, at, 0, 0) + struct.pack(">i", 0)
        waiting = line.expect(at)
        line.write(framed(fixed, body, Header.BINARY))
        site.compare(f"the code of a heartbeat in language {code}", 0, (await waiting).code)
        expected[client] = {"clientAddr": line.address, "clientId": client, "version": version} | (
            {"language": name} if name else {}
        )
    for language in ("CPP", "NODE_JS", "strange", ""):
        line, client = await site.client(f"named {language}"), f"named {language}"
        lines.append(line)
        body = json.dumps({"clientID": client, "producerDataSet": [{"groupName": "makers"}]}).encode()
        answer = await line.request(CODES["HEART_BEAT"], {}, body, language=language, version=7)
        site.compare(f"the code of a heartbeat in {language!r}", 0, answer.code)
        expected[client] = {
            "clientAddr": line.address, "clientId": client, "version": 7, "language": language,
        }  # fmt: skip
    for header in _BOTH:
        answer = await site.ask(
            "GET_PRODUCER_CONNECTION_LIST", of_frame={"header": header}, producerGroup="makers"
        )
        shown = {each["clientId"]: each for each in json.loads(answer.body)["connectionSet"]}
        for client, of_client in expected.items():
            site.compare(f"the client {client}", of_client, shown.pop(client, None))
        site.compare("other clients", {}, shown)
    for line in lines:
        line.close()


async def _remarks(site: Site) -> None:
    """The answer of a consumer passes to the administrator with its code, its body and its remark."""
    member = await site.client("member")
    await beat(site, "m@1", "g", [subscription("Topic-A")], by=member)
    member.pushed.clear()
    asked: dict[str, Any] = {"consumerGroup": "g", "clientId": "m@1"}
    for code, remark, body in ((1, "why", b""), (0, None, b"{}"), (7, "\u20acä", b"x"), (0, "", b"")):
        for of_member in _BOTH:
            for of_asker in _BOTH:
                line = await site.client("asker")
                extra = entry("", "nothing") if of_asker is Header.BINARY else b""
                fields = b"".join(map(entry, asked, asked.values())) + extra
                if of_asker is Header.BINARY:
                    fixed = struct.pack(">hbhiii", CODES["GET_CONSUMER_RUNNING_INFO"], 3, 409, 5, 0, 0)
                    waiting = line.expect(5)
                    line.write(framed(fixed + struct.pack(">i", len(fields)) + fields, b"", Header.BINARY))
                else:
                    waiting = line.put(CODES["GET_CONSUMER_RUNNING_INFO"], asked)
                await asyncio.sleep(0.1)
                (request,) = member.pushed
                member.pushed.clear()
                site.compare("the fields that the member receives", asked, dict(request.fields))
                member.write(
                    encode(Frame(code, request.opaque, RESPONSE, {}, body, remark, header=of_member))
                )
                answer = await waiting
                site.compare(
                    f"what the administrator receives in {of_asker.name} of {of_member.name}",
                    (code, remark or None, body, of_asker),
                    (answer.code, answer.remark, answer.body, answer.header),
                )


HEADER_TEXTS: Final = Inspection("texts in headers", header_texts)
