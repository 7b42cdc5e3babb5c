"""A hypervisor without libvirt: domains in memory, identified by the UUID in their XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nova import errors
from nova.model.server.states import PowerState
from nova.virt.libvirt.hypervisor import ConnectionLost, HostSize, PowerEvent, Sink
from tests.fakes.hypervisor_actions import Actions
from tests.fakes.hypervisor_devices import Devices, Screens, placed
from tests.fakes.hypervisor_moves import Migrations

CAPABILITIES = """
<capabilities>
  <host>
    <cpu><arch>x86_64</arch><model>EPYC</model><vendor>AMD</vendor>
      <topology sockets='1' dies='1' cores='2' threads='2'/>
      <feature name='ssse3'/><feature name='aes'/></cpu>
    <topology><cells num='1'><cell id='0'/></cells></topology>
  </host>
  <guest><os_type>hvm</os_type><arch name='x86_64'><machine>pc-i440fx-7.2</machine><machine>q35</machine>
    <domain type='qemu'/><domain type='kvm'><machine>pc-q35-7.2</machine></domain></arch></guest>
  <guest><os_type>hvm</os_type><arch name='aarch64'><machine>virt</machine><domain type='qemu'/></arch></guest>
</capabilities>"""

DOMAIN_CAPABILITIES = """
<domainCapabilities><path>/usr/bin/qemu-system-x86_64</path><machine>{machine}</machine>
  <os supported='yes'><enum name='firmware'>{firmware}</enum>
    <loader supported='yes'><enum name='secure'>{secure}<value>no</value></enum></loader></os>
  <cpu><mode name='host-passthrough' supported='no'/>
    <mode name='custom' supported='yes'><model usable='yes'>Haswell</model><model usable='yes'>Nehalem</model>
      <model usable='no'>EPYC-Rome</model></mode></cpu>
  <devices><disk><enum name='bus'><value>ide</value><value>virtio</value></enum></disk>
    <video><enum name='modelType'><value>vga</value><value>virtio</value></enum></video>
    <rng><enum name='model'><value>virtio</value></enum></rng>
    <tpm supported='yes'><enum name='model'><value>tpm-tis</value><value>tpm-crb</value></enum>
      <enum name='backendModel'><value>emulator</value></enum>
      <enum name='backendVersion'><value>1.2</value><value>2.0</value></enum></tpm></devices>
</domainCapabilities>"""


def counted(domain: ET.Element, running: bool) -> dict[str, Any]:
    """Return a domain's statistics in libvirt's form, from its XML; the ones of a process only if it is running."""
    cpus, memory = int(domain.findtext("vcpu", "0")), int(domain.findtext("memory", "0"))
    unit = {"MiB": 1024, "KiB": 1}[domain.find("memory").get("unit", "KiB")]  # type: ignore[union-attr]
    found: dict[str, Any] = {"vcpu.current": cpus, "vcpu.maximum": cpus, "balloon.maximum": memory * unit}
    devices = [("block", "disk", ("rd.bytes", "rd.reqs", "wr.bytes", "wr.reqs"))]
    if running:
        devices.append(("net", "interface", ("rx.bytes", "rx.pkts", "rx.errs", "rx.drop", "tx.bytes", "tx.pkts")))
        found |= {f"vcpu.{number}.{what}": 1 for number in range(cpus) for what in ("state", "time")}
        found["balloon.rss"] = memory * unit // 2
    for kind, element, counts in devices:
        names = [target.get("dev") for target in domain.iterfind(f"devices/{element}/target")]
        found[f"{kind}.count"] = len(names)
        for number, name in enumerate(names):
            found[f"{kind}.{number}.name"] = name
            found |= {f"{kind}.{number}.{count}": 0 for count in counts if running}
    return found


class FakeHypervisor(Actions, Migrations, Screens, Devices):
    """A hypervisor. ``guests_obey`` False: they ignore the power button. ``refuse``: why the next start fails."""

    def __init__(self, efi: bool = False) -> None:
        Actions.__init__(self)
        Migrations.__init__(self)
        Screens.__init__(self)
        Devices.__init__(self)
        self.xml: dict[str, str] = {}
        self.secrets: dict[str, bytes] = {}
        self.power: dict[str, PowerState] = {}
        self.guests_obey, self.refuse, self.down, self.efi = True, "", False, efi
        self.asked: list[str] = []
        self.reopened = 0
        self.capabilities_xml = CAPABILITIES
        self.node_devices_xml: tuple[str, ...] = ()
        self._sink: Sink = lambda event: None

    def open(self, sink: Sink) -> None:
        self._check()
        self._sink = sink

    def close(self) -> None:
        self._sink = lambda event: None

    def reopen(self) -> None:
        self._check()
        self.reopened += 1

    def lose(self) -> None:
        self._sink(ConnectionLost())

    def hostname(self) -> str:
        return "host1"

    def version(self) -> int:
        return 7_002_022

    def size(self) -> HostSize:
        return HostSize(cpus=4, memory_mb=8192)

    def capabilities(self) -> str:
        return self.capabilities_xml

    def domain_capabilities(self, arch: str, machine: str | None, virt_type: str) -> str:
        q35 = machine is not None and "q35" in machine
        return DOMAIN_CAPABILITIES.format(
            firmware="<value>efi</value>" if self.efi else "", machine="pc-q35-7.2" if q35 else "pc-i440fx-7.2",
            secure="<value>yes</value>" if self.efi and q35 else "")

    def node_devices(self) -> tuple[str, ...]:
        return self.node_devices_xml

    def states(self) -> Mapping[str, PowerState]:
        self._check()
        return dict(self.power)

    def state(self, server_uuid: str) -> PowerState | None:
        self._check()
        return self.power.get(server_uuid)

    def noted(self, server_uuid: str, namespace: str) -> bool:
        return namespace in self.xml.get(server_uuid, "")

    def stats(self, server_uuid: str) -> Mapping[str, Any]:
        running = self._known(server_uuid) == PowerState.RUNNING
        return counted(ET.fromstring(self.shown(server_uuid)), running)

    def define(self, xml: str) -> None:
        self._check()
        server_uuid = ET.fromstring(xml).findtext("uuid")
        assert server_uuid
        self.keep_live(server_uuid)
        self.xml[server_uuid] = placed(xml)
        self.power.setdefault(server_uuid, PowerState.SHUTDOWN)

    def start(self, server_uuid: str, held: bool = False) -> None:
        if self._known(server_uuid) in (PowerState.RUNNING, PowerState.PAUSED):
            return
        if self.refuse:
            reason, self.refuse = self.refuse, ""
            raise errors.host.LibvirtRefused(task="start the guest", reason=reason)
        self.saved.discard(server_uuid)
        log = ET.fromstring(self.xml[server_uuid]).find("devices/serial/log")
        if log is not None:
            Path(log.get("file", "")).write_text("booting\n")
        self.turn(server_uuid, PowerState.PAUSED if held else PowerState.RUNNING)

    def request_shutdown(self, server_uuid: str) -> None:
        self._known(server_uuid)
        self.asked.append(server_uuid)
        if self.guests_obey:
            self.turn(server_uuid, PowerState.SHUTDOWN)

    def power_off(self, server_uuid: str) -> None:
        self._check()
        if self.power.get(server_uuid) in (PowerState.RUNNING, PowerState.PAUSED):
            self.turn(server_uuid, PowerState.SHUTDOWN)

    def undefine(self, server_uuid: str) -> None:
        self._check()
        self.saved.discard(server_uuid)
        self.xml.pop(server_uuid, None)
        self.power.pop(server_uuid, None)
        self.forget_screens(server_uuid)

    def secret(self, secret_uuid: str) -> bytes | None:
        return self.secrets.get(secret_uuid)

    def has_secret(self, secret_uuid: str) -> bool:
        return secret_uuid in self.secrets

    def keep_secret(self, secret_uuid: str, xml: str, value: bytes) -> None:
        assert ET.fromstring(xml).findtext("uuid") == secret_uuid
        self.secrets[secret_uuid] = value

    def drop_secret(self, secret_uuid: str) -> None:
        self.secrets.pop(secret_uuid, None)

    def turn(self, server_uuid: str, state: PowerState) -> None:
        self.power[server_uuid] = state
        self.forget_screens(server_uuid)
        self._sink(PowerEvent(server_uuid, state))

    def _known(self, server_uuid: str) -> PowerState:
        self._check()
        if server_uuid not in self.power:
            raise errors.guest.NotDefined(uuid=server_uuid)
        return self.power[server_uuid]

    def _check(self) -> None:
        if self.down:
            raise errors.host.LibvirtDown(host="host1", uri="fake:///", reason="it is down")
