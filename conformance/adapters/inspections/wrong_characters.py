"""JSON bodies with one wrong character, and members of ours that a list has only if they say something.

See docs/reference/protocol/framing.md, "JSON bodies".
"""

import json
from collections.abc import Iterable
from typing import Any, Final

from mqproof.conformance.adapters.inspections.site import Inspection, Site
from mqproof.conformance.adapters.inspections.strange_brokers import Registrant, body_of
from mqproof.conformance.wire import chapters

_VERSION: Final = '{"timestamp":7,"counter":1}'


async def wrong_characters(site: Site) -> None:
    site.rule = chapters.JSON_BODIES
    await _inserted(site)
    await _members(site)


def _strange(text: str) -> Iterable[str]:
    """Yield the text with a character inserted at each place outside of texts in it."""
    inside = False
    for at, character in enumerate((*text, "")):
        if not inside and not (character.isdigit() or character == ""):
            yield text[:at] + "!" + text[at:]
        inside ^= character == '"'
    yield from (text + end for end in ("!", "}", "x", "1", ",{}"))
    yield from (begin + text for begin in ("x", "1", "{", "}", "-", '"', "\x00", "7:"))


async def _inserted(site: Site) -> None:
    """A character that is wrong, at any place of a body, is an error."""
    one = Registrant(site, "inserted")
    await one.register(body_of([], 1))
    await one.ask("QUERY_DATA_VERSION", _VERSION)
    for mixed in ('{counter:1,"timestamp":7}', '{"counter":1,timestamp:7}', "{'counter':1,\"timestamp\":7}"):
        answer = await one.ask("QUERY_DATA_VERSION", mixed[:-1] + ',"stateVersion":0}')
        site.compare(f"whether {mixed} is another version", "false", answer.fields.get("changed"))
    for text in _strange(_VERSION):
        await one.ask("QUERY_DATA_VERSION", text, 1)
    await one.ask("UNREGISTER_BROKER")


async def _members(site: Site) -> None:
    """Lists for other brokers have a member of ours only if there is something to say."""
    for name, members in (
        ("GET_ALL_TOPIC_CONFIG", {"dataVersion", "topicConfigTable"}),
        ("GET_ALL_SUBSCRIPTIONGROUP_CONFIG", {"dataVersion", "subscriptionGroupTable"}),
    ):
        found: dict[str, Any] = json.loads((await site.ask(name)).body)
        site.compare(f"the members of the answer to {name}", members, set(found))


WRONG_CHARACTERS: Final = Inspection("wrong characters", wrong_characters)
