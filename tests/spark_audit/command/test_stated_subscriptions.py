"""The option --subscription: what it means, and what is refused."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mqproof.cli import app
from mqproof.spark_audit.command.stated_subscriptions import parse_subscriptions
from mqproof.spark_audit.sources.inputs import InputError
from tests.spark_audit.conftest import LogBuilder, write_ndjson


def test_subscriptions_are_group_topic_and_tags() -> None:
    texts = ["g:t=TagB||TagA", "*:*=*", "%RETRY%g:a-b_c= TagA ", "g:t=TagA || TagB"]
    assert parse_subscriptions(texts) == (
        ("g", "t", "TagA || TagB"),
        ("*", "*", "*"),
        ("%RETRY%g", "a-b_c", "TagA"),
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("g=A", "expected GROUP:TOPIC=TAGS"),
        ("g:t", "expected GROUP:TOPIC=TAGS"),
        (":t=A", "expected GROUP:TOPIC=TAGS"),
        ("g h:t=A", "expected GROUP:TOPIC=TAGS"),
        ("g:t=A\nB", "expected GROUP:TOPIC=TAGS"),
        ("g:t=" + "A" * 5000, "expected GROUP:TOPIC=TAGS"),
        ("g:t=", "no tag expression"),
        ("g:t=A ||", "no tag expression"),
        ("g:t=A || *", "no tag expression"),
        ("g:t=A | B", "no tag expression"),
    ],
)
def test_a_malformed_subscription_is_refused(text: str, why: str) -> None:
    with pytest.raises(InputError, match=f"--subscription: .*{why}"):
        parse_subscriptions([text])


def test_two_subscriptions_that_disagree_are_refused() -> None:
    with pytest.raises(InputError, match="g:t is given twice, as 'A' and 'B'"):
        parse_subscriptions(["g:t=A", "g:t=B"])


def test_the_command_applies_the_option_and_repeats_it_for_a_replay(tmp_path: Path) -> None:
    builder = LogBuilder(subscribed=())
    for offset in range(3):
        builder.stored(f"m_{offset}", offset)
    log = tmp_path / "log.ndjson"
    log.write_bytes(write_ndjson(builder.deliver("m_0", 0).deliver("m_2", 2).rows))
    arguments = ["audit", "run", str(log), "--id", "DELIV-1", "--engine", "local"]
    assert CliRunner().invoke(app, arguments).exit_code == 3
    found = CliRunner().invoke(app, [*arguments, "--subscription", "g:t=*"])
    assert found.exit_code == 1
    assert "--subscription 'g:t=*'" in found.output
    refused = CliRunner().invoke(app, [*arguments, "--subscription", "g"])
    assert refused.exit_code == 2
    assert "expected GROUP:TOPIC=TAGS" in refused.output
