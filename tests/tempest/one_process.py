"""tempest's target without a sandbox: nova-all, a whole cloud in one process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nova.devel.running import RunningCloud
from tests.tempest import conf

VENVS = Path(os.environ.get("NOVA_STACK_VENVS", "/opt/nova-stack"))
COMPUTES = 2
IMAGE = b"a disk" * 100
#: Consoles of each kind, as a sandbox has them.
MORE = "[spice]\nenabled = True\n"


class OneProcess:
    """What a run of tempest asks of its cloud."""

    def __init__(self, cloud: RunningCloud, state: Path, neutron: bool) -> None:
        self.cloud, self.programs, self.neutron = cloud, VENVS / "tempest" / "bin", neutron
        self.hosts = tuple(state / f"host{number}" for number in range(1, COMPUTES + 1))

    def facts(self, folder: Path) -> conf.Facts:
        """What every test needs, made new."""
        return conf.Facts(
            keystone=self.keystone, region="RegionOne", password=self.cloud.password,
            images=(self.image("tempest-1", IMAGE), self.image("tempest-2", IMAGE)),
            flavors=(self.flavor("tempest.small", 128, 1, 1), self.flavor("tempest.large", 256, 2, 2)),
            network="private", computes=COMPUTES, folder=str(folder), **self.neutron_facts())

    def neutron_facts(self) -> dict[str, Any]:
        """Nothing of a cloud without Neutron."""
        if not self.neutron:
            return {}
        [outside] = self.ask("network", "GET", "/v2.0/networks?name=public")["networks"]
        extensions = self.ask("network", "GET", "/v2.0/extensions")["extensions"]
        return {"outside": outside["id"], "extensions": tuple(one["alias"] for one in extensions)}

    @property
    def keystone(self) -> str:
        return self.cloud.auth_url

    def ask(self, service: str, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """As the administrator: the answer's JSON. keystoneauth1's errors."""
        answer = self.cloud.session("admin").request(path, method, json=body, endpoint_filter={"service_type": service},
                                                     **more)
        return answer.json() if answer.content else None

    def flavor(self, name: str, ram: int, vcpus: int, disk: int) -> str:
        made = self.ask("compute", "POST", "/flavors", {"flavor": {"name": name, "ram": ram, "vcpus": vcpus,
                                                                   "disk": disk}})
        return str(made["flavor"]["id"])

    def image(self, name: str, content: bytes) -> str:
        made = self.ask("image", "POST", "/v2/images", {"name": name, "visibility": "public", "disk_format": "raw",
                                                        "container_format": "bare"})
        self.ask("image", "PUT", f"/v2/images/{made['id']}/file", data=content,
                 headers={"Content-Type": "application/octet-stream"})
        return str(made["id"])

    def pretend_network(self) -> None:
        """See ``conf.PRETENDED``."""
        made = self.ask("identity", "POST", "/v3/services", {"service": {"type": "network", "name": "none"}})
        address = self.keystone.replace("/identity/v3", "/v2.1/no-network")
        self.ask("identity", "POST", "/v3/endpoints", {"endpoint": {
            "service_id": made["service"]["id"], "interface": "public", "url": address, "region_id": "RegionOne"}})

    def run(self, command: list[str], folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=folder, text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=seconds, check=False)


@contextmanager
def one_process(folder: Path, neutron: bool = False) -> Iterator[OneProcess]:
    state, more = folder / "cloud", folder / "more.conf"
    more.write_text(MORE)
    words = ("--state", str(state), "--config-file", str(more), *(("--networking", "neutron") if neutron else ()))
    with RunningCloud(hosts=COMPUTES, more=words) as cloud:
        yield OneProcess(cloud, state, neutron)
