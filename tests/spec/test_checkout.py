"""Commands that write pages or records do so only in a checkout."""

from pathlib import Path

import pytest

from mqproof.spec import checkout as module
from mqproof.spec.checkout import cache_folder, checkout, expect_checkout

ROOT = Path(__file__).parents[2]


def test_these_tests_run_in_a_checkout() -> None:
    assert checkout() == expect_checkout("--record") == ROOT.resolve()
    assert cache_folder("mutation") == ROOT.resolve() / "build" / "mutation"


def test_an_installed_package_is_not_a_checkout_and_cannot_write_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_ROOT", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert checkout() is None
    assert cache_folder("mutation") == tmp_path / "cache" / "mqproof" / "mutation"
    with pytest.raises(SystemExit) as ended:
        expect_checkout("--record")
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"mqproof: --record: needs a checkout of mqproof's repository; this package is {tmp_path}\n"
    )
