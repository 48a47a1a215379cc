"""Tests the warning about secrets that other users can read."""

import logging

import pytest

from mqproof.impl.runtime.security.secret_files import warn_if_exposed
from mqproof.impl.runtime.simulated_disk import SimulatedDisk


@pytest.mark.parametrize(("mode", "warnings"), [(0o600, False), (0o640, False), (0o644, True), (0o602, True)])
def test_only_a_file_that_other_users_can_access_causes_a_warning(
    mode: int, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    disk = SimulatedDisk()
    disk.create("/store/plain_acl.yml", 0, mode)
    with caplog.at_level(logging.WARNING):
        warn_if_exposed(disk, "/store/plain_acl.yml")
        warn_if_exposed(disk, "/store/none")
    assert [f"mode {mode:04o}: run `chmod 600 /store/plain_acl.yml`" in one for one in caplog.messages] == [
        True
    ] * warnings
