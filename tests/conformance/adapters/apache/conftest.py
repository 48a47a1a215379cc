"""The Apache releases that the tests run against."""

import pytest

from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, jars, java, releases


@pytest.fixture(scope="session", params=releases())
def release(request: pytest.FixtureRequest) -> str:
    """Return a release that is available; tests of an unavailable release are skipped."""
    name: str = request.param
    try:
        java()
        jars(name)
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")
    return name
