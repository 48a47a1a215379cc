"""Fixtures: the wheel of this checkout, and an environment that contains only the wheel."""

from pathlib import Path

import pytest

from tests.package.environments import Environment, build_wheel, environment


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return the environment of `pip install mqproof`, without extras."""
    return environment(tmp_path_factory.mktemp("bare"), wheel)
