"""The files of the container agree with each other and with the broker. No builder is needed for that."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import yaml

from mqproof.impl.broker.config import read
from mqproof.impl.metrics.config import Exporter

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "container"
IMAGE = (FOLDER / "Containerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))


def exposed() -> set[str]:
    return set(re.findall(r"^EXPOSE (.*)$", IMAGE, re.MULTILINE)[0].split())


def test_the_configuration_of_the_image_is_one_of_a_broker() -> None:
    config, unknown = read((FOLDER / "broker.conf").read_text(encoding="utf-8"), "broker.conf")
    assert unknown == ()
    assert config.metrics.exporter is Exporter.PROM
    ports = {str(config.port), str(config.metrics.metrics_port), "9876", "8080"}
    assert ports == exposed()
    assert f"VOLUME {config.store_directory}" in IMAGE
    assert f"127.0.0.1:{config.metrics.metrics_port}/readyz" in IMAGE


def test_the_image_runs_as_a_user_and_copies_every_part_of_the_package() -> None:
    first, last = IMAGE.split("\nFROM ")[1:]
    assert "USER 10001:10001" in last
    parts = {link.name for link in (ROOT / "mqproof").iterdir() if link.is_symlink()}
    copied = set(re.findall(r"^COPY (\w+) (?:\w+)$", first, re.MULTILINE))
    assert copied == parts | {"mqproof"}


def test_the_compose_file_publishes_the_ports_on_the_loopback_address_only() -> None:
    broker = COMPOSE["services"]["broker"]
    published = [port.split(":") for port in broker["ports"]]
    assert {host for host, _, _ in published} == {"127.0.0.1"}
    assert exposed() | {"9090"} == {inner for _, _, inner in published}
    assert all(outer == inner for _, outer, inner in published)
    others = {name: one for name, one in COMPOSE["services"].items() if name != "broker"}
    assert {one["network_mode"] for one in others.values()} == {"service:broker"}
    for mounted in COMPOSE["services"]["metrics"]["volumes"]:
        assert (FOLDER / mounted.split(":")[0]).is_file(), mounted
    scraped = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"][0]
    assert scraped["static_configs"][0]["targets"] == ["127.0.0.1:5557"]


def test_the_build_says_that_no_builder_works(tmp_path: Path) -> None:
    for name in ("dirname", "cat", "tail"):
        (tmp_path / name).symlink_to(Path("/usr/bin") / name)
    command = f"PATH={shlex.quote(str(tmp_path))} /bin/sh {shlex.quote(str(FOLDER / 'build.sh'))}"
    ran = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (4, "")
    assert "no builder works here: start docker, or install podman or buildah" in ran.stderr
