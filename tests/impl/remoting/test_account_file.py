"""Tests tools.yml. Source: docs/reference/protocol/access-control.md, "Accounts"."""

import pytest

from mqproof.impl.remoting.account_file import parse
from mqproof.impl.remoting.signing import Credentials
from mqproof.impl.runtime.properties import ConfigError


@pytest.mark.parametrize("secret", ["s3cr3t: x", "*s3cr3t", "!s3cr3t!x"])
def test_an_error_does_not_quote_the_secret(secret: str) -> None:
    with pytest.raises(ConfigError, match=r"^f: line 2, column [0-9]+: not valid YAML$"):
        parse(f"accessKey: the-admin\nsecretKey: {secret}\n", "f")


def test_a_file_names_an_account() -> None:
    assert parse("accessKey: the-admin\nsecretKey: 12345678\n", "f") == Credentials("the-admin", "12345678")
    token = parse("{accessKey: a, secretKey: b, securityToken: c}", "f")
    assert token == Credentials("a", "b", "c")


@pytest.mark.parametrize("text", ["", "accessKey: a", "- a", "accessKey: [", "accessKey: [a]\nsecretKey: b"])
def test_an_invalid_account_file_is_reported_in_one_line(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f")
    assert str(caught.value).startswith("f: ")
    assert "\n" not in str(caught.value)
