"""Secrets that libvirt keeps for guests on this host."""

from __future__ import annotations

from typing import Any

import libvirt

from nova.virt.libvirt.connection.link import Link


class Secrets(Link):
    def secret(self, secret_uuid: str) -> bytes | None:
        return self.call("read a guest's secret", lambda connection: _value(_find(connection, secret_uuid)))

    def keep_secret(self, secret_uuid: str, xml: str, value: bytes) -> None:
        def keep(connection: Any) -> None:
            (_find(connection, secret_uuid) or connection.secretDefineXML(xml)).setValue(value)
        self.call("keep a guest's secret", keep)

    def drop_secret(self, secret_uuid: str) -> None:
        def drop(connection: Any) -> None:
            found = _find(connection, secret_uuid)
            if found is not None:
                found.undefine()
        self.call("remove a guest's secret", drop)


# --- run in a real thread: nothing but libvirt's calls

def _find(connection: Any, secret_uuid: str) -> Any:
    try:
        return connection.secretLookupByUUIDString(secret_uuid)
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_SECRET:
            return None
        raise


def _value(secret: Any) -> bytes | None:
    """None too for a secret whose keeper died before it was given its value."""
    try:
        return None if secret is None else secret.value()
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_NO_SECRET:
            return None
        raise
