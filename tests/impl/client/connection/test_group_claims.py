"""Tests that a group has one consumer under one client id."""

import pytest

from mqproof.impl.client.connection.group_claims import GroupClaims
from mqproof.impl.client.model import ClientError

US = ("127.0.0.1:9876", "c1")


def test_a_second_owner_is_refused_until_the_first_releases_the_group() -> None:
    claims = GroupClaims()
    claims.claim(US, "G", "first")
    claims.claim(US, "G", "first")
    with pytest.raises(ClientError, match="group G already has a consumer with client id c1"):
        claims.claim(US, "G", "second")
    claims.claim(("127.0.0.1:9876", "c2"), "G", "second")
    claims.claim(US, "H", "second")
    claims.release(US, "G")
    claims.claim(US, "G", "second")
