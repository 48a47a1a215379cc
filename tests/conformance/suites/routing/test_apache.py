"""Apache's name servers are judged by the routing model over the wire; one example kills them."""

import pytest

from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, jars, java, releases
from mqproof.conformance.adapters.routing.name_servers import targets
from mqproof.conformance.engine.suite_run import run_suite
from mqproof.conformance.suites.routing.suite import ROUTING
from mqproof.report.model import Verdict


@pytest.mark.apache
@pytest.mark.parametrize("release", releases())
def test_the_model_explains_apaches_name_server(release: str) -> None:
    try:
        java()
        jars(release)
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")
    with targets(f"apache:{release}", slave_speaks=not release.startswith("4.")) as factory:
        found = {result.id: result.verdict for result in run_suite(factory, 4, seed=0, suite=ROUTING)}
    not_tested = dict.fromkeys(("ROUTE-3", "ROUTE-4"), Verdict.NOT_TESTED)
    assert found == dict.fromkeys(("ROUTE-1", "ROUTE-2", "SPEC-1"), Verdict.HELD) | not_tested
