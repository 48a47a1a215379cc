"""The releases of Apache's that tests run against."""

import pytest

from mqproof.conformance.adapters.apache.artifacts import ApacheMissingError, jars, java, releases


@pytest.fixture(scope="session", params=releases())
def release(request: pytest.FixtureRequest) -> str:
    """A release that is there; what needs one that is not is not tested."""
    name: str = request.param
    try:
        java()
        jars(name)
    except ApacheMissingError as error:
        pytest.skip(f"not tested: {error}")
    return name
