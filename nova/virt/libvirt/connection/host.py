"""The host, its hypervisor and devices, and libvirt's secrets for guests."""

from __future__ import annotations

import libvirt

from nova.virt.libvirt.connection.link import Link, coded
from nova.virt.libvirt.connection.objects import Connect, Secret
from nova.virt.libvirt.hypervisor import HostSize

KINDS = (libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV | libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_NET
         | libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_VDPA)


class HostConnection(Link):
    def hostname(self) -> str:
        return self.call("read the host name", lambda connection: connection.getHostname())

    def version(self) -> int:
        return self.call("read its version", lambda connection: connection.getVersion())

    def size(self) -> HostSize:
        info = self.call("read the host's size", lambda connection: connection.getInfo())
        return HostSize(cpus=info[2], memory_mb=info[1])

    def capabilities(self) -> str:
        return self.call("read its capabilities", lambda connection: connection.getCapabilities())

    def domain_capabilities(self, arch: str, machine: str | None, virt_type: str) -> str:
        return self.call("read its domain capabilities",
                         lambda connection: connection.getDomainCapabilities(None, arch, machine, virt_type, 0))

    def node_devices(self) -> tuple[str, ...]:
        return self.call("list the host's devices", _devices)

    # --- secrets

    def secret(self, secret_uuid: str) -> bytes | None:
        return self.call("read a guest's secret", lambda connection: _value(_find(connection, secret_uuid)))

    def has_secret(self, secret_uuid: str) -> bool:
        return self.call("look for a secret", lambda connection: _has_value(_find(connection, secret_uuid)))

    def keep_secret(self, secret_uuid: str, xml: str, value: bytes) -> None:
        def keep(connection: Connect) -> None:
            (_find(connection, secret_uuid) or connection.secretDefineXML(xml)).setValue(value)
        self.call("store a guest's secret", keep)

    def drop_secret(self, secret_uuid: str) -> None:
        def drop(connection: Connect) -> None:
            found = _find(connection, secret_uuid)
            if found is not None:
                found.undefine()
        self.call("remove a guest's secret", drop)


# --- run in a native thread: only libvirt calls

def _devices(connection: Connect) -> tuple[str, ...]:
    found = []
    for device in connection.listAllDevices(KINDS):
        with coded(libvirt.VIR_ERR_NO_NODE_DEVICE):  # removed since the list was made
            found.append(device.XMLDesc(0))
    return tuple(found)


def _find(connection: Connect, secret_uuid: str) -> Secret | None:
    with coded(libvirt.VIR_ERR_NO_SECRET):
        return connection.secretLookupByUUIDString(secret_uuid)
    return None


def _value(secret: Secret | None) -> bytes | None:
    """Return the secret's value, or None. A secret has no value if nova-compute died between its two calls."""
    with coded(libvirt.VIR_ERR_NO_SECRET):
        return None if secret is None else secret.value()
    return None


def _has_value(secret: Secret | None) -> bool:
    """Return whether the secret has a value. libvirt does not show the value of a private secret, but it has one."""
    with coded(libvirt.VIR_ERR_INVALID_SECRET):
        return _value(secret) is not None
    return True
