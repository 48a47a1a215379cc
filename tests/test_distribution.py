"""Files that use Spark run in one worker, and a deep test has a reason."""

from collections import OrderedDict
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.conftest import FIRST, TestsByGroup, pytest_collection_modifyitems, uses_spark


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def test_a(spark): ...", True),
        ("def fixture(*, compiling_spark: object): ...", True),
        ("from x import spark\ndef test_a(tmp_path): spark()", False),
    ],
)
def test_a_file_uses_spark_if_a_function_has_its_fixture(tmp_path: Path, code: str, expected: bool) -> None:
    (tmp_path / "test_a.py").write_text(code)
    assert uses_spark(tmp_path / "test_a.py") is expected


@pytest.mark.parametrize(("fixtures", "is_refused"), [(["tmp_path"], False), (["spark", "log"], True)])
def test_a_test_that_gets_spark_from_a_fixture_of_another_file_is_refused(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, fixtures: list[str], is_refused: bool
) -> None:
    monkeypatch.setattr(request.node, "fixturenames", fixtures)
    if not is_refused:
        pytest_collection_modifyitems([request.node])
        return
    with pytest.raises(pytest.UsageError, match="uses Spark, expected a parameter compiling_spark or spark"):
        pytest_collection_modifyitems([request.node])


@pytest.mark.parametrize(
    ("mark", "is_refused"),
    [
        (pytest.mark.deep("60 CPU seconds"), False),
        (pytest.mark.deep, True),
        (pytest.mark.deep(" "), True),
    ],
    ids=["reason", "none", "blank"],
)
def test_a_deep_test_without_a_reason_is_refused(
    request: pytest.FixtureRequest, mark: pytest.MarkDecorator, is_refused: bool
) -> None:
    request.node.add_marker(mark)
    if not is_refused:
        pytest_collection_modifyitems([request.node])
        return
    with pytest.raises(pytest.UsageError, match="reason"):
        pytest_collection_modifyitems([request.node])


def test_the_files_that_begin_exist() -> None:
    root = Path(__file__).parents[1]
    assert [name for name in FIRST if name != "spark" and not (root / name).is_file()] == []


def test_a_worker_begins_with_the_files_that_use_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    assigned: list[str] = []

    def assign(scheduler: TestsByGroup, _node: object) -> None:
        assigned.append(scheduler.workqueue.popitem(last=False)[0])

    monkeypatch.setattr(LoadScopeScheduling, "_assign_work_unit", assign)
    scheduler = TestsByGroup.__new__(TestsByGroup)
    scheduler.workqueue = OrderedDict.fromkeys(("tests/test_cli.py", "spark"))
    for _ in range(2):
        scheduler._assign_work_unit(object())
    assert assigned == ["spark", "tests/test_cli.py"]
