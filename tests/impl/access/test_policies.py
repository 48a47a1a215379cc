"""Tests policies of RocketMQ 5 as permissions of an account.

Source: docs/reference/protocol/access-control.md, "Users and policies".
"""

import pytest

from mqproof.impl.access.acl import AccountEntry, AclEntries, rules
from mqproof.impl.access.permissions import PUB, SUB, Kind, Need
from mqproof.impl.access.policies import granted, policies_of, revoked, user_of
from mqproof.impl.remoting.bodies import Policy, PolicyEntry

ACCOUNT = AccountEntry("orders-app", "12345678", topic_perms=["T=PUB|SUB", "Out=PUB"], group_perms=["G=DENY"])


def policy(resource: str, *actions: str, decision: str = "ALLOW", policy_type: str = "") -> list[Policy]:
    return [Policy([PolicyEntry(resource, list(actions), decision)], policy_type)]


def test_what_is_granted_is_what_the_rules_allow() -> None:
    account = granted(ACCOUNT, policy("Topic:New", "Pub", "Sub"))
    account = granted(account, policy("Topic:Out", "Pub", "Sub", decision="DENY"))
    account = granted(account, policy("Group:*", "Sub"))
    (found,) = rules(AclEntries(accounts=[account])).accounts.values()
    assert found.allows(Need(Kind.TOPIC, "New", PUB))
    assert found.allows(Need(Kind.TOPIC, "New", SUB))
    assert found.allows(Need(Kind.TOPIC, "T", PUB)), "other permissions stay"
    assert not found.allows(Need(Kind.TOPIC, "Out", PUB))
    assert not found.allows(Need(Kind.TOPIC, "Unnamed", SUB))
    assert found.allows(Need(Kind.GROUP, "any", SUB))
    assert not found.allows(Need(Kind.GROUP, "G", SUB))


def test_the_permissions_of_an_account_are_shown_as_a_policy_that_grants_them() -> None:
    account = granted(granted(ACCOUNT, policy("Topic:*", "All")), policy("Group:*", "Sub"))
    shown = policies_of(account)
    assert shown.subject == "User:orders-app"
    (custom,) = shown.policies
    assert custom.policy_type == "Custom"
    assert [(each.resource, each.actions, each.decision) for each in custom.entries] == [
        ("Topic:T", ["Pub", "Sub"], "Allow"),
        ("Topic:Out", ["Pub"], "Allow"),
        ("Topic:*", ["Pub", "Sub"], "Allow"),
        ("Group:G", ["Sub"], "Deny"),
        ("Group:*", ["Sub"], "Allow"),
    ]
    assert granted(AccountEntry("orders-app", "12345678"), shown.policies) == account
    assert [each.resource for each in policies_of(account, "Out").policies[0].entries] == ["Topic:Out"]
    assert policies_of(AccountEntry("x", "y")).policies == []


def test_permissions_are_revoked_one_by_one_or_all() -> None:
    left = revoked(ACCOUNT, "Topic:T")
    assert (left.topic_perms, left.group_perms) == (["Out=PUB"], ["G=DENY"])
    bare = revoked(granted(ACCOUNT, policy("Topic:*", "Pub")), None)
    assert bare == AccountEntry("orders-app", "12345678")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (policy("Cluster:*", "Pub"), "resource 'Cluster:\\*'"),
        (policy("Topic:T*", "Pub"), "resource 'Topic:T\\*'"),
        (policy("Topic:", "Pub"), "resource 'Topic:'"),
        (policy("Topic:A=B", "Pub"), "resource 'Topic:A=B'"),
        (policy("Topic:T", "Create"), "action 'Create' of Topic:T"),
        (policy("Group:G", "Pub"), "action 'Pub' of Group:G is not supported, Sub expected"),
        (policy("Topic:T"), "no actions"),
        (policy("Topic:T", "Pub", decision="DENY"), "cannot be denied alone"),
        (policy("Topic:T", "Pub", decision="MAYBE"), "decision 'MAYBE'"),
        (policy("Topic:T", "Pub", policy_type="Default"), "policy type 'Default'"),
        ([Policy([PolicyEntry("Topic:T", ["Pub"], "ALLOW", ["10.0.0.1"])])], "source addresses"),
    ],
)
def test_what_an_account_cannot_express_is_refused(asked: list[Policy], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        granted(ACCOUNT, asked)


@pytest.mark.parametrize("subject", ["orders-app", "User:", "Group:G", ""])
def test_a_subject_is_a_user(subject: str) -> None:
    assert user_of("User:orders-app") == "orders-app"
    with pytest.raises(ValueError, match="User:NAME expected"):
        user_of(subject)
