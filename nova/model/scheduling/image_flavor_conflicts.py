"""Contradictions between an image and a flavor that can be found without a host. Restrictions of actions on the
resulting server: :mod:`nova.model.server.action_restrictions`.

Names that are in no table here are ignored. Other modules report invalid values
(:mod:`nova.model.image.image_properties`, :mod:`nova.model.flavor.extra_specs`). Source: the public contract of the
Compute API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

YES = frozenset({"yes", "true", "on", "1", "y", "t"})


class Conflict(NamedTuple):
    """A name and value that conflicts with the flavor or another property, and the reason."""

    name: str
    value: str
    reason: str


Properties = Mapping[str, str]


def _flag(text: str) -> str:
    return str(text.strip().lower() in YES)


def _plain(text: str) -> str:
    return text


#: Settings that must be equal if both are set. Image property -> (extra spec of the flavor, parser)
ALIKE: dict[str, tuple[str, Callable[[str], str]]] = {
    "hw_tpm_version": ("hw:tpm_version", _plain), "hw_tpm_model": ("hw:tpm_model", _plain),
    "hw_viommu_model": ("hw:viommu_model", _plain), "hw_virtio_packed_ring": ("hw:virtio_packed_ring", _flag),
    "hw_vif_multiqueue_enabled": ("hw:vif_multiqueue_enabled", _flag), "hw_pmu": ("hw:pmu", _flag),
    "hw_maxphysaddr_mode": ("hw:maxphysaddr_mode", _plain),
}
#: Upper limits of image properties. Property -> (extra spec with the limit, default without that extra spec; None:
#: unlimited)
LIMITS: dict[str, tuple[str, int | None]] = {
    "hw_serial_port_count": ("hw:serial_port_count", None),
    "hw_cpu_sockets": ("hw:cpu_max_sockets", None), "hw_cpu_cores": ("hw:cpu_max_cores", None),
    "hw_cpu_threads": ("hw:cpu_max_threads", None), "hw_cpu_max_sockets": ("hw:cpu_max_sockets", None),
    "hw_cpu_max_cores": ("hw:cpu_max_cores", None), "hw_cpu_max_threads": ("hw:cpu_max_threads", None),
    "hw_video_ram": ("hw_video:ram_max_mb", 0),
}
_AGAINST = {"required": "disabled", "disabled": "required"}


def conflict(image: Properties, extra_specs: Properties) -> Conflict | None:
    """Return the first contradiction; None if there is none."""
    for find in (_unlike, _boot, _too_much, _no_such_tpm):
        found = find(image, extra_specs)
        if found is not None:
            return found
    return None


def _unlike(image: Properties, extra_specs: Properties) -> Conflict | None:
    for name, (spec, read) in ALIKE.items():
        if name in image and spec in extra_specs and read(image[name]) != read(extra_specs[spec]):
            return _says(image, name, extra_specs, spec)
    return None


def _boot(image: Properties, extra_specs: Properties) -> Conflict | None:
    name, spec = "os_secure_boot", "os:secure_boot"
    if spec in extra_specs and _AGAINST.get(image.get(name, "")) == extra_specs[spec]:
        return _says(image, name, extra_specs, spec)
    return None


def _says(image: Properties, name: str, extra_specs: Properties, spec: str) -> Conflict:
    return Conflict(name, image[name], f"the flavor has {spec}={extra_specs[spec]}")


def _too_much(image: Properties, extra_specs: Properties) -> Conflict | None:
    for name, (spec, unsaid) in LIMITS.items():
        wanted = _number(image.get(name, ""))
        most = _number(extra_specs[spec]) if spec in extra_specs else unsaid
        if wanted is not None and most is not None and wanted > most:
            return Conflict(name, image[name], f"the flavor allows {most} ({spec})")
    return None


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None


def _no_such_tpm(image: Properties, extra_specs: Properties) -> Conflict | None:
    versions = {"hw_tpm_version": image.get("hw_tpm_version"), "hw:tpm_version": extra_specs.get("hw:tpm_version")}
    models = {"hw_tpm_model": image.get("hw_tpm_model"), "hw:tpm_model": extra_specs.get("hw:tpm_model")}
    version = versions["hw:tpm_version"] or versions["hw_tpm_version"]
    for name, model in models.items():
        if model and not version:
            return Conflict(name, model, "hw:tpm_version is required")
        if model and version == "1.2" and model != "tpm-tis":
            return Conflict(name, model, "TPM 1.2 requires the model tpm-tis")
    return None
