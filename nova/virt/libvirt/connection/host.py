"""What the host and the hypervisor on it are."""

from __future__ import annotations

from nova.virt.libvirt.connection.link import Link
from nova.virt.libvirt.hypervisor import HostSize


class HostCalls(Link):
    def hostname(self) -> str:
        return self.call("tell its host's name", lambda connection: connection.getHostname())

    def version(self) -> int:
        return self.call("tell its version", lambda connection: connection.getVersion())

    def size(self) -> HostSize:
        info = self.call("tell the host's size", lambda connection: connection.getInfo())
        return HostSize(cpus=info[2], memory_mb=info[1])

    def capabilities(self) -> str:
        return self.call("tell its capabilities", lambda connection: connection.getCapabilities())

    def domain_capabilities(self, arch: str, machine: str | None, virt_type: str) -> str:
        return self.call("tell what guests may have",
                         lambda connection: connection.getDomainCapabilities(None, arch, machine, virt_type, 0))
