"""The results of real clients: kept, merged and shown, and our own client at our broker."""

from pathlib import Path

import pytest

from mqproof.conformance.client_scenarios import matrix
from mqproof.conformance.client_scenarios.matrix import CLIENTS, Cell, line, merged, read, text
from mqproof.conformance.client_scenarios.scenarios import SCENARIOS
from mqproof.conformance.client_scenarios.sites import OURS
from mqproof.report.model import Exit


def cell(client: str = "go", scenario: str = "sends", received: int = 4, verdict: str = "held") -> Cell:
    return Cell(client, OURS, scenario, verdict, 4, received, 4 - received, 0, 0, 2, 1.5, "a note")


def test_a_new_result_replaces_the_old_one_and_the_order_is_that_of_the_table(tmp_path: Path) -> None:
    old = [cell(scenario="tags"), cell(received=3)]
    kept = merged(old, [cell(), cell(client=OURS), cell(client="java-4.9.8")])
    assert kept == [cell(client="java-4.9.8"), cell(), cell(scenario="tags"), cell(client=OURS)]
    path = tmp_path / "results.json"
    assert read(path) == []
    path.write_text(text(kept), encoding="utf-8")
    assert read(path) == kept


def test_a_result_is_one_line() -> None:
    assert line(cell(received=3, verdict="violated")) == (
        "go at mqproof: sends: violated: 3 of 4, 1 lost, 0 duplicated, 0 unexpected, 2 kills, 2 s (a note)"
    )


def test_each_of_apaches_clients_meets_our_broker_and_ours_each_of_apaches() -> None:
    pairs = matrix.pairs()
    assert {client for client, broker in pairs if broker == OURS} == {*CLIENTS} - {OURS}
    assert {client for client, broker in pairs if broker != OURS} == {OURS}


@pytest.mark.parametrize(("verdict", "code"), [("held", Exit.HELD), ("violated", Exit.VIOLATED)])
def test_the_exit_code_and_the_file_have_the_results(
    verdict: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[tuple[str, str]] = []

    def run(chosen: list[tuple[str, str]], scenarios: list[object], _: Path) -> list[Cell | str]:
        asked.extend(chosen)
        assert [getattr(scenario, "name", "") for scenario in scenarios] == ["sends"]
        return [cell(verdict=verdict), cell("java-4.9.8")]

    monkeypatch.setattr(matrix, "run", run)
    path = tmp_path / "results.json"
    assert matrix.main(["--broker", OURS, "--scenario", "sends", "--json", str(path)]) == code
    assert asked == [(client, OURS) for client in CLIENTS if client != OURS]
    assert [one.client for one in read(path)] == ["java-4.9.8", "go"]
    assert capsys.readouterr().out.count("\n") == 2


@pytest.mark.deep("three processes and two kills for each scenario: two minutes")
@pytest.mark.timeout(1200)
def test_our_client_at_our_broker_has_exact_counts(tmp_path: Path) -> None:
    # `traces` asks Apache's mqadmin.
    wanted = [scenario for scenario in SCENARIOS if scenario.name != "traces"]
    cells = list(matrix.run([(OURS, OURS)], wanted, tmp_path))
    assert len(cells) == len(wanted)
    bad = [one for one in cells if isinstance(one, str) or one.verdict != "held" or one.duplicated]
    assert bad == []
