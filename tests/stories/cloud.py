"""The whole cloud in one process, with two hosts that drive libvirt: all of nova but the connection to libvirt, with
real files and image tools."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from nova.compute.guests.images import CacheSettings, ImageCache
from nova.compute.host import Host
from nova.compute.service import ComputeParts, ComputeService
from nova.conf import compute as compute_options
from nova.model.flavor.flavors import NewFlavor
from nova.model.image.images import Image
from nova.privileged.qemu_img import QemuImg
from nova.rpc.contracts.compute import ComputeRPC
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from nova.rpc.host_secret import HostSecret
from nova.virt.libvirt.vifs import bridge
from tests.fakes.api import ApiClient
from tests.fakes.compute import options
from tests.fakes.living_cloud import OFFERS, LivingCloud
from tests.unit.virt.libvirt.test_libvirt_driver import FakeLinks
from tests.unit.virt.libvirt.test_libvirt_moves import MoveRig

IMAGE_ID = "70a599e0-31e7-49b7-b260-868f441e862b"
ADMIN = "admin:p1"


class LibvirtProcess:
    """nova-compute of a host, with the libvirt driver."""

    def __init__(self, cloud: LibvirtCloud, name: str, path: Path) -> None:
        self._rig = MoveRig(path, cloud.links)
        self.hypervisor, self.gates = self._rig.hypervisor, self._rig.gates
        group = options(compute_options, state_path=str(path), vif_plugging_timeout=0)
        cache = ImageCache(cloud, CacheSettings(directory=path / "instances" / "_base"), QemuImg())  # type: ignore[arg-type]
        self._service = ComputeService(
            ComputeParts(self._rig.driver, cloud.bus.client(ConductorHostRPC, name), cache, group,
                         store=cloud.image_service, consoles=OFFERS, secret=HostSecret(path), live_waits=False),
            Host(name, path))
        self._service.start()
        cloud.bus.serve(ComputeRPC, self._service, name)

    def end(self) -> None:
        self._service.stop(5.0)
        self._rig.close()


class LibvirtCloud(LivingCloud):
    """A cloud of two hosts, with an image, a network, two flavors and a volume."""

    def __init__(self, folder: Path, templates: Path) -> None:
        self.links = FakeLinks()
        bridge.links = self.links  # type: ignore[assignment]  # the real ones need root
        super().__init__(folder, templates, ("host1", "host2"))
        self._image = folder / "image"
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", self._image, "1M"], check=True)
        self.image_service.add(IMAGE_ID, size_bytes=self._image.stat().st_size)
        self.volume_service.kind = "rbd"
        self.volume_service.data = {"name": "volumes/volume-1", "hosts": ["127.0.0.1"], "ports": ["6789"]}
        self.volume_id = self.volume_service.add()
        self.api = ApiClient(conductor=SimpleNamespace(client=lambda: self.control), token=ADMIN, version="2.90")
        self.network_id = self.api.get("/os-networks", version="2.1").json["networks"][0]["id"]
        self.control.create_flavor(NewFlavor(flavorid="2", name="larger", memory_mb=128, vcpus=2, root_gb=1))

    def add_compute(self, host: str, nodes: Any = ()) -> LibvirtProcess:
        self.enroll(host)
        made = self.computes[host] = LibvirtProcess(self, host, self.folder / host)  # type: ignore[assignment]
        for other in self.computes.values():
            other.hypervisor.peers[made.gates] = made.hypervisor  # type: ignore[attr-defined]
            made.hypervisor.peers[other.gates] = other.hypervisor  # type: ignore[attr-defined]
        return made

    def download(self, _image: Image, path: str, limit_bytes: int | None = None) -> int:
        """Answer the hosts' image caches."""
        return Path(path).write_bytes(self._image.read_bytes())

    def settle(self, *uuids: str, seconds: float = 120.0) -> None:
        """Wait longer than tests do: each call is traced."""
        super().settle(*uuids, seconds=seconds)

    # --- the stories

    def create(self) -> str:
        """Create a server on a named network, wait until it is active, and return its UUID."""
        made = self.api.post("/servers", {"server": {
            "name": "vm", "imageRef": IMAGE_ID, "flavorRef": "1", "networks": [{"uuid": self.network_id}]}})
        assert made.status_int == 202, made.text
        uuid: str = made.json["server"]["id"]
        self.settle(uuid)
        assert self.server(uuid).vm_state == "active", self.server(uuid).fault
        return uuid

    def act(self, uuid: str, name: str, **body: object) -> None:
        """Request an action, and wait for its end."""
        answer = self.api.post(f"/servers/{uuid}/action", {name: body or None})
        assert answer.status_int in (202, 204), answer.text
        self.settle(uuid)

    def resize(self, uuid: str) -> None:
        self.act(uuid, "resize", flavorRef="2")
        assert self.server(uuid).vm_state == "resized", self.server(uuid).fault

    def confirm(self, uuid: str) -> None:
        self.act(uuid, "confirmResize")

    def live_migrate(self, uuid: str) -> None:
        before = self.server(uuid).host
        self.act(uuid, "os-migrateLive", host=None, block_migration="auto")
        assert self.server(uuid).host != before, self.rows("cell", "select * from migrations")

    def attach(self, uuid: str) -> None:
        answer = self.api.post(f"/servers/{uuid}/os-volume_attachments",
                               {"volumeAttachment": {"volumeId": self.volume_id}})
        assert answer.status_int == 200, answer.text
        self.settle(uuid)
        assert self.volume_service.status(self.volume_id) == "in-use"

    def detach(self, uuid: str) -> None:
        assert self.api.delete(f"/servers/{uuid}/os-volume_attachments/{self.volume_id}").status_int == 202
        self.settle(uuid)

    def delete(self, uuid: str) -> None:
        answer = self.api.delete(f"/servers/{uuid}")
        assert answer.status_int == 204, answer.text
        self.settle(uuid)
