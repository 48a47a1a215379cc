"""Operations on users and policies. A broker without access control refuses them."""

from typing import Final

from mqproof.conformance.wire import chapters
from mqproof.conformance.wire.fields import fields
from mqproof.conformance.wire.model import Expect, Operation, Server, Since, Strength

_USER: Final = '{"username":"wire_user","password":"wiresecret","userType":"Normal"}'
_POLICY: Final = (
    '{"policies":[{"entries":[{"actions":["Pub"],"decision":"ALLOW","resource":"Topic:wire"}]}],'
    '"subject":"User:wire_user"}'
)


def _operation(code: int, name: str, slug: str, table: str = "", body: str = "") -> Operation:
    return Operation(
        code, name, slug, Server.BROKER, chapters.USERS_AND_POLICIES, fields(table) if table else (), body,
        Expect(codes=()), Since.V5, Strength.MAY,
    )  # fmt: skip


OPERATIONS: Final = (
    _operation(3001, "AUTH_CREATE_USER", "user-create", "username S! wire_user", _USER),
    _operation(3002, "AUTH_UPDATE_USER", "user-update", "username S! wire_user", _USER),
    _operation(3004, "AUTH_GET_USER", "user", "username S! wire_user"),
    _operation(3005, "AUTH_LIST_USER", "users", "filter S? wire"),
    _operation(3006, "AUTH_CREATE_ACL", "policy-create", "subject S! User:wire_user", _POLICY),
    _operation(3007, "AUTH_UPDATE_ACL", "policy-update", "subject S! User:wire_user", _POLICY),
    _operation(3009, "AUTH_GET_ACL", "policy", "subject S! User:wire_user"),
    _operation(
        3010, "AUTH_LIST_ACL", "policies",
        """
        subjectFilter  S? wire
        resourceFilter S?
        """,
    ),
    _operation(
        3008, "AUTH_DELETE_ACL", "policy-delete",
        """
        subject    S! User:wire_user
        policyType S?
        resource   S? Topic:wire
        """,
    ),
    _operation(3003, "AUTH_DELETE_USER", "user-delete", "username S! wire_user"),
)  # fmt: skip
