"""Changes of accounts: by the requests of 4.9, by users and policies of 5.x, and by the file.

See docs/reference/protocol/access-control.md, "Accounts" and "Users and policies".
"""

import asyncio
import json
from typing import Any, Final

from mqproof.conformance.adapters.inspections import java_values
from mqproof.conformance.adapters.inspections.accounts import ADMIN, FILE, SECRET, Account, Visitor
from mqproof.conformance.adapters.inspections.site import CODES, Inspection, Site
from mqproof.conformance.hosts.simulated import MASTER
from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.frames import Frame

_PATH: Final = "/store/config/plain_acl.yml"
_POLLED_S: Final = 6
_WHITE: Final = (
    ("10.0.2.7", "10.0.2.7", "10.0.2.8"),
    ("10.0.2.*", "10.0.2.255", "10.0.3.7"),
    ("10.0.*", "10.0.255.1", "10.1.0.1"),
    ("10.0.2.{7,9}", "10.0.2.9", "10.0.2.8"),
    ("10.0.2.7-9", "10.0.2.9", "10.0.2.10"),
    ("10.0.2.7-9", "10.0.2.7", "10.0.2.6"),
    ("10.0.2-3.{1,5-6},10.9.9.9", "10.0.3.6", "10.0.3.4"),
    ("10.0.2-3.{1,5-6},10.9.9.9", "10.9.9.9", "10.9.9.8"),
    ("*", "10.0.2.7", ""),
    ("", "", "10.0.2.7"),
    ("2001:db8::7", "2001:db8::7", "2001:db8::8"),
    ("2001:db8:0:0:0:0:0:1-a", "2001:db8::a", "2001:db8::b"),
    ("2001:db8:*", "2001:db8:ffff::7", "2001:db9::7"),
    ("2001:db8:0:0:0:0:0:{7,ff}", "2001:db8::ff", "10.0.2.7"),
)
"""White lists, each with an address that is in it, and one that is not."""
_NOT_WHITE: Final = (
    "10.0.2.256",
    "10.0.2.9-7",
    "10.0",
    "10.0.2.7.1",
    "10.0.x.1",
    "10.0.2.{1,x}",
    "::1::2",
    "10.0.2.1-",
)


async def of_4_9(site: Site) -> None:
    """Create, change and delete accounts and white lists with the codes 50 to 53."""
    site.rule = chapters.ACCESS_CONTROL
    visitor = Visitor(site, await site.client())
    before = await _version(visitor)
    site.compare("the version of the first file", 1, before)
    await _white_lists(site, visitor)
    new = Account("a-new-one")
    await _code(
        visitor,
        0,
        "UPDATE_AND_CREATE_ACL_CONFIG",
        accessKey=new.key,
        secretKey=SECRET,
        topicPerms="t=SUB, u=PUB|SUB",
    )
    await _allows(visitor, new, {("t", "S"), ("u", "P"), ("u", "S")})
    await _code(visitor, 0, "UPDATE_AND_CREATE_ACL_CONFIG", accessKey=new.key, defaultTopicPerm="PUB")
    await _allows(visitor, new, {("t", "S"), ("u", "P"), ("u", "S"), ("v", "P")})
    await _code(visitor, 0, "UPDATE_AND_CREATE_ACL_CONFIG", accessKey=new.key, topicPerms="")
    await _allows(visitor, new, {("t", "P"), ("u", "P"), ("v", "P")})
    await _code(
        visitor,
        0,
        "UPDATE_AND_CREATE_ACL_CONFIG",
        accessKey=new.key,
        defaultTopicPerm="DENY",
        groupPerms="g=SUB",
        defaultGroupPerm="DENY",
    )
    await _allows(visitor, new, {("g", "G")})
    await _code(
        visitor, 0, "UPDATE_AND_CREATE_ACL_CONFIG", accessKey=new.key, groupPerms="", defaultGroupPerm="SUB"
    )
    await _allows(visitor, new, {("g", "G"), ("h", "G")})
    await _code(visitor, 0, "UPDATE_AND_CREATE_ACL_CONFIG", accessKey=new.key, admin=True)
    await _allows(visitor, new, {(name, perm) for name in "tuv" for perm in "PS"} | {("g", "G"), ("h", "G")})
    await _code(
        visitor,
        0,
        "UPDATE_AND_CREATE_ACL_CONFIG",
        accessKey=new.key,
        admin=False,
        whiteRemoteAddress="10.0.1.1",
    )
    answer = await visitor.line.request(CODES["GET_BROKER_CONFIG"], {"AccessKey": new.key})
    site.compare("the code for an account's own white address", 0, answer.code, answer.remark)
    await _refused_changes(visitor, new)
    answer = await visitor.ask(new, "GET_MAX_OFFSET", topic="t", queueId=0)
    site.compare("whether a deleted account is refused", True, visitor.is_refused("GET_MAX_OFFSET", answer))
    after = await _version(visitor)
    site.compare("whether the version grew", True, after > before)
    await _by_file(site, visitor)


async def _refused_changes(visitor: Visitor, new: Account) -> None:
    """Accounts that are not possible are refused; the last change deletes the new one."""
    for code, name, fields in (
        (209, "UPDATE_AND_CREATE_ACL_CONFIG", {"accessKey": "another"}),
        (209, "UPDATE_AND_CREATE_ACL_CONFIG", {"accessKey": "sixsix", "secretKey": SECRET}),
        (209, "UPDATE_AND_CREATE_ACL_CONFIG", {"accessKey": "another", "secretKey": "sixsix"}),
        (209, "UPDATE_AND_CREATE_ACL_CONFIG", {"accessKey": new.key, "topicPerms": "t"}),
        (209, "UPDATE_AND_CREATE_ACL_CONFIG", {"accessKey": new.key, "topicPerms": "=SUB"}),
        (209, "UPDATE_AND_CREATE_ACL_CONFIG", {"accessKey": new.key, "defaultGroupPerm": "READ"}),
        (0, "UPDATE_AND_CREATE_ACL_CONFIG", {"accessKey": "seven77", "secretKey": "seven77"}),
        (210, "DELETE_ACL_CONFIG", {"accessKey": "another"}),
        (0, "DELETE_ACL_CONFIG", {"accessKey": new.key}),
        (210, "DELETE_ACL_CONFIG", {"accessKey": new.key}),
    ):  # fmt: skip
        await _code(visitor, code, name, **fields)


async def _white_lists(site: Site, visitor: Visitor) -> None:
    """The white addresses of an account need its name only, and those of all need no name."""
    for text, inside, outside in _WHITE:
        await _code(
            visitor, 0, "UPDATE_AND_CREATE_ACL_CONFIG", accessKey="nothing", whiteRemoteAddress=text
        )  # fmt: skip
        for host, expected in ((inside, True), (outside, False)):
            await _is_white(site, visitor, host, expected, AccessKey="nothing")
    for text in _NOT_WHITE:
        await _code(
            visitor, 209, "UPDATE_AND_CREATE_ACL_CONFIG", accessKey="nothing", whiteRemoteAddress=text
        )  # fmt: skip
    await _code(visitor, 0, "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG", globalWhiteAddrs="10.0.7.*, 10.0.8.1")
    for host, expected in (("10.0.7.9", True), ("10.0.8.1", True), ("10.0.8.2", False)):
        await _is_white(site, visitor, host, expected)
    await _code(visitor, 211, "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG", globalWhiteAddrs="10.0.7.*,10")
    await _is_white(site, visitor, "10.0.7.9", True)
    await _code(visitor, 0, "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG", globalWhiteAddrs="")
    await _is_white(site, visitor, "10.0.7.9", False)


async def _is_white(site: Site, visitor: Visitor, host: str, expected: bool, **fields: str) -> None:
    if host:
        client = await site.client(host=host)
        answer = await client.request(CODES["GET_BROKER_CONFIG"], fields)
        observed = not visitor.is_refused("GET_BROKER_CONFIG", answer)
        site.compare(f"whether {host} is white with {fields}", expected, observed)


async def _by_file(site: Site, visitor: Visitor) -> None:
    """A changed file counts within 5 s; an invalid one changes nothing, and a restart keeps the changes."""
    content = json.loads(FILE)
    content["accounts"].append(Account("of-the-file", topics={"t": "S"}).entry())
    new = Account("of-the-file")
    site.write_file(MASTER, _PATH, json.dumps(content))
    await asyncio.sleep(_POLLED_S)
    await _allows(visitor, new, {("t", "S")})
    for wrong in (
        "accounts: 7",
        "{",
        json.dumps({"accounts": [ADMIN.entry(), ADMIN.entry()]}),
    ):
        site.write_file(MASTER, _PATH, wrong)
        await asyncio.sleep(_POLLED_S)
        await _allows(visitor, new, {("t", "S")})
    site.write_file(MASTER, _PATH, json.dumps(content))
    await asyncio.sleep(_POLLED_S)
    await _code(visitor, 0, "UPDATE_AND_CREATE_ACL_CONFIG", accessKey=new.key, topicPerms="u=PUB")
    await site.restart(killed=True)
    await _allows(Visitor(site, await site.client()), new, {("u", "P")})


async def _version(visitor: Visitor) -> int:
    answer = await visitor.ask(ADMIN, "GET_BROKER_CLUSTER_ACL_INFO")
    site = visitor.site
    shown = {name: answer.fields.get(name) for name in ("brokerName", "brokerAddr", "clusterName")}
    expected = {"brokerName": "broker-a", "brokerAddr": str(site.broker), "clusterName": "DefaultCluster"}
    site.compare("the broker of the accounts", expected, shown)
    return int(java_values.read(answer.fields.get("version", '{"counter":-1}'))["counter"])


async def _code(visitor: Visitor, code: int, name: str, body: Any = b"", **fields: object) -> Frame:
    answer = await visitor.ask(ADMIN, name, body, **fields)
    visitor.site.compare(f"the code of {name} {fields} {body!r:.200}", code, answer.code, answer.remark)
    return answer


async def _allows(visitor: Visitor, account: Account, expected: set[tuple[str, str]]) -> None:
    """Compare what an account may use, of three topics and two groups."""
    requests = {
        **{(topic, "P"): ("SEND_MESSAGE", {"topic": topic}) for topic in "tuv"},
        **{(topic, "S"): ("QUERY_MESSAGE", {"topic": topic}) for topic in "tuv"},
        **{(group, "G"): ("GET_CONSUMER_LIST_BY_GROUP", {"consumerGroup": group}) for group in "gh"},
    }
    observed = {
        key
        for key, (name, fields) in requests.items()
        if await visitor.is_allowed(account, name, b"", fields)
    }
    visitor.site.compare(f"what {account.key} may use", sorted(expected), sorted(observed))


async def of_5_x(site: Site) -> None:
    """Create, change and delete users and policies with the codes 3001 to 3010."""
    site.rule = chapters.USERS_AND_POLICIES
    visitor = Visitor(site, await site.client())
    user = Account("user/of-5")
    await _code(visitor, 0, "AUTH_CREATE_USER", {"password": SECRET, "userType": "Normal"}, username=user.key)
    await _allows(visitor, user, set())
    await _shows_user(visitor, user, "Normal")
    for code, name, body, username in (
        (16, "AUTH_CREATE_USER", {"password": SECRET}, user.key),
        (16, "AUTH_CREATE_USER", {"userType": "Normal"}, "another-one"),
        (16, "AUTH_CREATE_USER", {"password": "", "userType": "Normal"}, "another-one"),
        (16, "AUTH_CREATE_USER", {"password": "sixsix"}, "another-one"),
        (16, "AUTH_CREATE_USER", {"password": SECRET, "userType": "Big"}, "another-one"),
        (16, "AUTH_CREATE_USER", {"password": SECRET, "userStatus": "disable"}, "another-one"),
        (16, "AUTH_UPDATE_USER", {"password": SECRET}, "another-one"),
        (0, "AUTH_DELETE_USER", b"", "another-one"),
        (0, "AUTH_UPDATE_USER", {"userType": "Super", "userStatus": "enable"}, user.key),
    ):
        await _code(visitor, code, name, body, username=username)
    await _shows_user(visitor, user, "Super")
    await _code(visitor, 0, "AUTH_UPDATE_USER", {"userType": "Normal"}, username=user.key)
    await _policies(visitor, user)
    for name, entries in _SHOWN.items():
        await _shows_policy(visitor, f"User:{name}", entries)
    await _code(visitor, 0, "AUTH_DELETE_USER", username=user.key)
    answer = await _code(visitor, 0, "AUTH_GET_USER", username=user.key)
    site.compare("the answer for a deleted user", b"", answer.body)
    listed = java_values.read((await _code(visitor, 0, "AUTH_LIST_USER", filter="any-")).body)
    site.compare("the users with any-", ["any-default", "any-name"], [each["username"] for each in listed])


async def _shows_user(visitor: Visitor, user: Account, kind: str) -> None:
    answer = await _code(visitor, 0, "AUTH_GET_USER", username=user.key)
    text = (await _code(visitor, 0, "AUTH_LIST_USER", filter=user.key)).body
    visitor.site.compare("the text of a list of users", java_values.standard(json.loads(text)), text)
    listed = java_values.read(text)
    expected = {"username": user.key, "userType": kind, "userStatus": "enable"}
    visitor.site.compare("the text of a user", java_values.standard(json.loads(answer.body)), answer.body)
    for what, found in (("user", [java_values.read(answer.body)]), ("listed user", listed)):
        observed = [{key: value for key, value in each.items() if value is not None} for each in found]
        visitor.site.compare(f"the {what}", [expected], observed)


_Entry = tuple[str, list[str], str]
_POLICIES: Final[tuple[tuple[list[_Entry], set[tuple[str, str]], list[_Entry]], ...]] = (
    ([("Topic:t", ["Pub"], "Allow")], {("t", "P")}, [("Topic:t", ["Pub"], "Allow")]),
    (
        [("Topic:u", ["Sub"], "ALLOW")],
        {("t", "P"), ("u", "S")},
        [("Topic:t", ["Pub"], "Allow"), ("Topic:u", ["Sub"], "Allow")],
    ),
    (
        [("Topic:t", ["Pub", "Sub"], "Deny"), ("Topic:*", ["All"], "Allow"), ("Group:g", ["Sub"], "Allow")],
        {("u", "S"), ("v", "P"), ("v", "S"), ("g", "G")},
        [
            ("Topic:u", ["Sub"], "Allow"), ("Topic:t", ["Pub", "Sub"], "Deny"),
            ("Topic:*", ["Pub", "Sub"], "Allow"), ("Group:g", ["Sub"], "Allow"),
        ],
    ),
    (
        [("Group:*", ["All"], "Allow"), ("Group:g", ["Sub"], "Deny")],
        {("u", "S"), ("v", "P"), ("v", "S"), ("h", "G")},
        [
            ("Topic:u", ["Sub"], "Allow"), ("Topic:t", ["Pub", "Sub"], "Deny"),
            ("Topic:*", ["Pub", "Sub"], "Allow"), ("Group:g", ["Sub"], "Deny"), ("Group:*", ["Sub"], "Allow"),
        ],
    ),
)  # fmt: skip
"""Policies in turn, what the account may use after each one, and the whole policy then."""
_SHOWN: Final[dict[str, list[_Entry]]] = {
    "publisher": [("Topic:t", ["Pub"], "Allow"), ("Group:g", ["Sub"], "Allow")],
    "no-group": [("Topic:t", ["Pub", "Sub"], "Allow")],
    "any-name": [("Topic:t", ["Pub", "Sub"], "Allow"), ("Group:g", ["Sub"], "Allow")],
    "any-default": [("Topic:*", ["Pub", "Sub"], "Allow"), ("Group:*", ["Sub"], "Allow")],
    "denied-one": [
        ("Topic:t", ["Pub", "Sub"], "Deny"), ("Topic:*", ["Pub", "Sub"], "Allow"),
        ("Group:*", ["Sub"], "Allow"),
    ],
}  # fmt: skip
"""The policies that accounts of the file are shown as."""
_REFUSED: Final[tuple[_Entry, ...]] = (
    ("Topic:t", [], "Allow"),
    ("Topic:t", ["Create"], "Allow"),
    ("Topic:t", ["Pub", "Create"], "Allow"),
    ("Group:g", ["Sub", "Pub"], "Allow"),
    ("Topic:t", ["Pub"], "Deny"),
    ("Topic:t", ["Pub"], "Perhaps"),
    ("Topic:t*", ["Pub"], "Allow"),
    ("Topic:", ["Pub"], "Allow"),
    ("Topic:t=u", ["Pub"], "Allow"),
    ("Cluster:c", ["Pub"], "Allow"),
    ("Group:g", ["Pub"], "Allow"),
)


def _policy(entries: list[_Entry], **others: object) -> dict[str, Any]:
    listed = [
        {"resource": resource, "actions": actions, "decision": decision, **others}
        for resource, actions, decision in entries
    ]
    return {"subject": "User:any", "policies": [{"policyType": "Custom", "entries": listed}]}


async def _policies(visitor: Visitor, user: Account) -> None:
    subject = f"User:{user.key}"
    answer = await _code(visitor, 0, "AUTH_GET_ACL", subject=subject)
    visitor.site.compare("the policy of a new user", b"", answer.body)
    for number, (entries, allowed, whole) in enumerate(_POLICIES):
        name = "AUTH_UPDATE_ACL" if number % 2 else "AUTH_CREATE_ACL"
        await _code(visitor, 0, name, _policy(entries), subject=subject)
        await _allows(visitor, user, allowed)
        await _shows_policy(visitor, subject, whole)
    for entry in _REFUSED:
        await _code(visitor, 16, "AUTH_CREATE_ACL", _policy([entry]), subject=subject)
    good: list[_Entry] = [("Topic:t", ["Pub"], "Allow")]
    await _code(visitor, 16, "AUTH_CREATE_ACL", _policy(good, sourceIps=["10.0.0.1"]), subject=subject)
    default = {"subject": subject, "policies": [{**_policy(good)["policies"][0], "policyType": "Default"}]}
    await _code(visitor, 16, "AUTH_CREATE_ACL", default, subject=subject)
    for stranger in ("User:unknown", "User:", user.key, "Role:r"):
        for name in ("AUTH_CREATE_ACL", "AUTH_DELETE_ACL", "AUTH_GET_ACL"):
            await _code(visitor, 16, name, _policy(good), subject=stranger)
    whole = _POLICIES[-1][2]
    await _shows_policy(visitor, subject, whole)
    await _code(visitor, 16, "AUTH_DELETE_ACL", subject=subject, resource="Cluster:c")
    await _code(visitor, 0, "AUTH_DELETE_ACL", subject=subject, resource="Topic:*")
    await _shows_policy(visitor, subject, [each for each in whole if each[0] != "Topic:*"])
    found = await _code(visitor, 0, "AUTH_LIST_ACL", subjectFilter=user.key, resourceFilter="Group:")
    entries = _entries(java_values.read(found.body)[0]["policies"])
    visitor.site.compare("the policies of groups", [each for each in whole if "Group" in each[0]], entries)
    await _code(visitor, 0, "AUTH_DELETE_ACL", subject=subject)
    answer = await _code(visitor, 0, "AUTH_GET_ACL", subject=subject)
    visitor.site.compare("the policy without permissions", b"", answer.body)
    found = await _code(visitor, 0, "AUTH_LIST_ACL", subjectFilter=user.key)
    visitor.site.compare("the list without permissions", [], java_values.read(found.body))
    subjects = [each["subject"] for each in java_values.read((await _code(visitor, 0, "AUTH_LIST_ACL")).body)]
    visitor.site.compare("whether subjects are in order", sorted(subjects), subjects)
    visitor.site.compare("the number of subjects", 8, len(subjects))


async def _shows_policy(visitor: Visitor, subject: str, expected: list[_Entry]) -> None:
    name = subject.removeprefix("User:")
    for request, fields in (
        ("AUTH_GET_ACL", {"subject": subject}),
        ("AUTH_LIST_ACL", {"subjectFilter": name}),
    ):
        text = (await _code(visitor, 0, request, **fields)).body
        visitor.site.compare(f"the text of {request}", java_values.standard(json.loads(text)), text)
    found = java_values.read((await _code(visitor, 0, "AUTH_GET_ACL", subject=subject)).body)
    visitor.site.compare("the subject", subject, found["subject"])
    visitor.site.compare(f"the policy of {subject}", expected, _entries(found["policies"]))


def _entries(policies: list[dict[str, Any]]) -> list[_Entry]:
    return [
        (entry["resource"], entry["actions"], entry["decision"])
        for policy in policies
        for entry in policy["entries"]
    ]


async def without(site: Site) -> None:
    """A broker without access control refuses the requests about accounts."""
    site.rule = chapters.ACCESS_CONTROL
    await site.ask("UPDATE_AND_CREATE_ACL_CONFIG", expects=209, accessKey="another", secretKey=SECRET)
    await site.ask("DELETE_ACL_CONFIG", expects=210, accessKey="another")
    await site.ask("UPDATE_GLOBAL_WHITE_ADDRS_CONFIG", expects=211, globalWhiteAddrs="*")
    await site.ask("GET_BROKER_CLUSTER_ACL_INFO", expects=1)
    await site.ask("AUTH_CREATE_USER", {"password": SECRET}, expects=1, username="another")
    await site.ask("AUTH_GET_USER", expects=1, username="another")
    await site.ask("AUTH_LIST_USER", expects=1)
    await site.ask("AUTH_GET_ACL", expects=1, subject="User:another")
    await site.ask("AUTH_LIST_ACL", expects=1)


_WITH: Final[dict[str, Any]] = {"acl_enabled": True}
ACCOUNTS_OF_4_9: Final = Inspection("accounts", of_4_9, _WITH, files={_PATH: FILE})
USERS_OF_5_X: Final = Inspection("users", of_5_x, _WITH, files={_PATH: FILE})
NO_ACCOUNTS: Final = Inspection("no accounts", without)
