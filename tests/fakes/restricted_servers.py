"""Servers with properties that forbid actions: a case for each property, and for each way to get it."""

from __future__ import annotations

from typing import NamedTuple

from nova.model.network import port_requests
from nova.model.network.networks import Interface
from nova.model.numa.pci_aliases import parse
from nova.model.server.action_restrictions import BuiltWith

ALIASES = parse(['{"name": "gpu", "vendor_id": "10de"}',
                 '{"name": "vgpu", "vendor_id": "10de", "live_migratable": "yes"}'])


def port(vnic_type: str, number: int = 1) -> Interface:
    return Interface(id=f"00000000-0000-4000-8000-00000000000{number}", mac=f"fa:16:3e:00:00:0{number}",
                     network_id="net", label="net", vnic_type=vnic_type)


PLAIN = BuiltWith(image={"hw_machine_type": "q35"}, extra_specs={"hw:cpu_policy": "shared"},
                  interfaces=(port("normal"),), aliases=ALIASES)


class Case(NamedTuple):
    name: str
    built_with: BuiltWith


def _flavor(name: str, **specs: str) -> Case:
    return Case(name, PLAIN._replace(extra_specs={key.replace("__", ":"): value for key, value in specs.items()}))


def _image(name: str, **properties: str) -> Case:
    return Case(name, PLAIN._replace(image=properties))


CASES = (
    _image("tpm-of-image", hw_tpm_version="2.0"), _flavor("tpm-of-flavor", hw__tpm_version="1.2"),
    _flavor("tpm-of-user", hw__tpm_version="2.0", hw__tpm_secret_security="user"),
    _flavor("tpm-of-deployment", hw__tpm_version="2.0", hw__tpm_secret_security="deployment"),
    _flavor("user-without-tpm", hw__tpm_secret_security="user"),
    _image("encrypted-by-image", hw_mem_encryption="yes"), _flavor("encrypted-by-flavor", hw__mem_encryption="True"),
    _flavor("encrypted-not", hw__mem_encryption="false"),
    _flavor("devices", pci_passthrough__alias="gpu:1"),
    _flavor("devices-migratable", pci_passthrough__alias="vgpu:2"),
    _flavor("devices-mixed", pci_passthrough__alias="vgpu:1, gpu:1"),
    _flavor("devices-of-unknown-alias", pci_passthrough__alias="forgotten:1"),
    _flavor("devices-of-no-alias", pci_passthrough__alias=" "),
    *(Case(f"port-{kind}", PLAIN._replace(interfaces=(port(kind),))) for kind in port_requests.KINDS),
    Case("port-normal", PLAIN),
    Case("port-normal-and-direct", PLAIN._replace(interfaces=(port("normal"), port("direct", 2)))),
)
