"""Apache's clients at our broker, and ours at Apache's: exact counts over kills of the broker."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError
from mqproof.conformance.client_scenarios.matrix import pairs, read, run_cell
from mqproof.conformance.client_scenarios.scenarios import SCENARIOS, Scenario
from mqproof.conformance.client_scenarios.sites import Site, site
from mqproof.conformance.pages.client_results import RESULTS
from mqproof.report.model import Verdict

pytestmark = [pytest.mark.apache, pytest.mark.timeout(900)]

RECORDED = {cell.key: cell for cell in read(RESULTS)}


class Sites:
    """The servers of one broker at a time: the tests of a broker follow each other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running = ExitStack()
        self._broker = ""
        self._site: Site | None = None

    def at(self, broker: str) -> Site:
        if self._site is None or broker != self._broker:
            self.end()
            self._broker = broker
            self._site = self._running.enter_context(site(broker, self._folder / broker))
        return self._site

    def end(self) -> None:
        self._site = None
        self._running.close()


@contextmanager
def _sites(folder: Path) -> Iterator[Sites]:
    made = Sites(folder)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with _sites(tmp_path_factory.mktemp("sites")) as made:
        yield made


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize(("client", "broker"), pairs(), ids=lambda name: name)
def test_a_scenario_has_the_recorded_result(
    client: str, broker: str, scenario: Scenario, sites: Sites, tmp_path: Path
) -> None:
    try:
        cell = run_cell(sites.at(broker), broker, client, scenario, tmp_path)
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")
    recorded = RECORDED.get(cell.key)
    # A defect of a released client or broker is on the page. It may be absent in one run.
    expected = {Verdict.HELD, Verdict.NOT_TESTED} if recorded is None else {Verdict.HELD, recorded.verdict}
    assert cell.verdict in expected, cell
