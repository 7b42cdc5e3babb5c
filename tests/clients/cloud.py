"""The cloud that is judged: nova-all, started for one judge alone; or one that is up already."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from keystoneauth1 import loading, session

from nova.devel.running import RunningCloud

#: A clouds.yaml with the two entries of a cloud that is up: it is used and left as it is. For those who write tests.
GIVEN = "NOVA_CLIENTS_CLOUDS"
USER, ADMIN = "nova-all", "nova-all-admin"
HOSTS = 4


class Cloud(NamedTuple):
    """``entries``: of its clouds.yaml, by name: USER and ADMIN."""

    entries: Mapping[str, Any]

    def login(self, name: str) -> Mapping[str, str]:
        """``auth`` of an entry: auth_url, username, password, project_name and domains."""
        return self.entries[name]["auth"]

    @property
    def region(self) -> str:
        return self.entries[USER].get("region_name", "RegionOne")

    def session(self, name: str) -> session.Session:
        plugin = loading.get_plugin_loader("password").load_from_options(**self.login(name))
        return session.Session(auth=plugin)

    def endpoint(self, service: str) -> str:
        """Its address in the catalogue, without a slash at its end."""
        found = self.session(ADMIN).get_endpoint(service_type=service, interface="public", region_name=self.region)
        assert found, f"the catalogue has no {service}"
        return found.rstrip("/")


@contextmanager
def running(folder: Path, speed: float) -> Iterator[Cloud]:
    """A cloud of HOSTS fake hosts, whose guests take as long for a boot or a reboot as ``speed`` says (1: as real
    ones). Its state, and its log, are in the folder. nova.devel.running.NotReady."""
    if given := os.environ.get(GIVEN):
        yield Cloud(yaml.safe_load(Path(given).read_text())["clouds"])
        return
    with RunningCloud(hosts=HOSTS, speed=speed, more=("--state", str(folder / "nova-all"))) as made:
        yield Cloud(yaml.safe_load(made.clouds_file.read_text())["clouds"])
