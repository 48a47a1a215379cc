"""Tests the generated page of the limits of requests."""

import re

from msgspec import inspect

from docs_site import request_limits
from mqproof.impl.remoting.bodies import SubscriptionGroup
from mqproof.impl.remoting.codes import request_name
from mqproof.impl.remoting.requests import FORMS


def test_the_page_has_every_request_and_the_limit_of_every_field() -> None:
    page = request_limits.page()
    for number, form in FORMS.items():
        assert f"| {number} | `{request_name(number)}` |" in page
        for kind in (form.header, form.body):
            if kind in (None, str, bytes):
                continue
            info = inspect.type_info(kind)
            assert isinstance(info, inspect.StructType)
            for field in info.fields:
                assert f"| {kind.__name__} | `{field.encode_name}` | " in page
    rows = re.findall(r"^\| \w+ \| `\w+` \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) > 200
    assert not [row for row in rows if not row or "None" in row or "any number" in row]


def test_limits_are_described_by_type() -> None:
    page = request_limits.page()
    assert "| PullRequest | `queueOffset` | -2^63 to 2^63-1 |" in page
    assert "| SendRequest | `topic` | at most 1024 characters |" in page
    assert "| Heartbeat | `consumerDataSet` | at most 1000 of: a ConsumerData |" in page
    info = inspect.type_info(SubscriptionGroup)
    assert isinstance(info, inspect.StructType)
    policy = next(field for field in info.fields if field.name == "group_retry_policy")
    assert "nested at most 16 levels" in request_limits.limit(policy.type)
