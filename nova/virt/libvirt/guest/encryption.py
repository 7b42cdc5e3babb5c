"""Guests whose memory is encrypted (AMD SEV), and whether this host can have them. Pure.

https://libvirt.org/kbase/launch_security_sev.html
"""

from __future__ import annotations

from collections.abc import Mapping

from nova import errors
from nova.virt.libvirt.guest.firmware import is_kind
from nova.virt.libvirt.guest.properties import NO
from nova.virt.libvirt.host.facts import HostFacts
from nova.virt.libvirt.xml.specs import EncryptionSpec

ASKING = ("hw:mem_encryption", "hw_mem_encryption")
MODELS = ("hw:mem_encryption_model", "hw_mem_encryption_model")
#: No debugging, no key sharing, not to be sent to another platform, and only by SEV; for SEV-ES registers, too.
POLICIES = {"amd-sev": 0x33, "amd-sev-es": 0x37}


def encryption_of(image: Mapping[str, str], extra_specs: Mapping[str, str], machine: str | None, efi: bool,
                  host: HostFacts) -> EncryptionSpec | None:
    """None when it is not asked for. host.NoSuchGuest says what is missing."""
    given = {**image, **extra_specs}
    name = next((one for one in ASKING if given.get(one, "no").strip().lower() not in NO), None)
    if name is None:
        return None
    model_name = next((one for one in MODELS if one in given), "")
    model, can = given.get(model_name, "amd-sev"), host.abilities(machine)
    reason = ""
    if model not in POLICIES:
        raise errors.host.NoSuchGuest(name=model_name, value=model, reason="this release has amd-sev and amd-sev-es")
    if not can.sev or host.virt_type != "kvm":
        reason = "its processor, kernel and QEMU do not encrypt guests' memory (AMD SEV)"
    elif model == "amd-sev-es" and not can.sev_es_guests:
        reason = "its processor has no keys for SEV-ES"
    elif not efi or not is_kind(machine, "q35"):
        reason = "such a guest needs UEFI and machine type q35 (hw_firmware_type=uefi, hw_machine_type=q35)"
    if reason:
        raise errors.host.NoSuchGuest(name=name, value=given[name], reason=reason)
    return EncryptionSpec(can.sev_cbit, can.sev_reduced_bits, POLICIES[model])
