"""ImagePropertiesFilter: the host can run the architecture, hypervisor type, mode and version that the image
requests."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from nova.model.image.image_properties import CONDITION
from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.filters import Filter
from nova.scheduler.views import HostFacts, HostView

#: requested property -> names of the image property, the current and the old one
PROPERTIES = {
    "architecture": ("hw_architecture", "architecture"),
    "hypervisor": ("img_hv_type", "hypervisor_type"),
    "mode": ("hw_vm_mode", "vm_mode"),
    "version": ("img_hv_requested_version", "hypervisor_version_requires"),
}

#: other names of the same value in existing images
SAME = {
    "amd64": "x86_64", "x64": "x86_64", "i386": "i686", "i486": "i686", "i586": "i686", "x86": "i686",
    "arm64": "aarch64", "armv7": "armv7l",
    "xapi": "xen", "xenserver": "xen", "hv": "hvm", "pv": "xen",
}

SHOWN = 100  # characters of a user's text in a refusal
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
            "=": operator.eq, "": operator.eq, "!=": operator.ne}


class ImagePropertiesFilter(Filter):
    on_rebuild = True
    reads = ("image_properties",)

    def wanted(self, request: PlacementRequest) -> bool:
        return any(self._asked(request.image_properties).values())

    def about(self, request: PlacementRequest) -> object:
        return self._asked(request.image_properties)

    def by_facts(self, request: PlacementRequest) -> bool:
        return True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        asked = self._asked(request.image_properties)
        wanted = (asked["architecture"], asked["hypervisor"], asked["mode"])
        if any(wanted) and not any(_matches(wanted, found) for found in host.facts.supported):
            return f"cannot run {' '.join(filter(None, wanted))} guests"
        return _version_refusal(host.facts, asked["version"])

    def _asked(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the image's requests; an empty text means no request."""
        found = {what: next((properties[name] for name in names if properties.get(name)), "")
                 for what, names in PROPERTIES.items()}
        if not found["architecture"]:
            found["architecture"] = getattr(self.options, "image_properties_default_architecture", None) or ""
        return {what: text if what == "version" else _plain(text) for what, text in found.items()}


def _plain(name: str) -> str:
    name = name.strip().lower()
    return SAME.get(name, name)


def _matches(wanted: tuple[str, str, str], found: tuple[str, str, str]) -> bool:
    return all(not want or want == _plain(has) for want, has in zip(wanted, found, strict=True))


def _version_refusal(facts: HostFacts, conditions: str) -> str | None:
    """Return why the hypervisor's version does not meet the conditions. They are separated by commas, and all must
    hold: ``>=2.6,<4``."""
    if not conditions:
        return None
    for condition in conditions.split(","):
        parsed = CONDITION.fullmatch(condition.strip())
        if parsed is None:
            return f"the image's version condition {conditions[:SHOWN]!r} is invalid"
        wanted = tuple(map(int, parsed[2].split(".")))
        length = max(3, len(wanted))
        if not _COMPARE[parsed[1] or ""](_padded(_version(facts.hypervisor_version), length), _padded(wanted, length)):
            return f"hypervisor version is not {conditions[:SHOWN]}"
    return None


def _version(number: int) -> tuple[int, ...]:
    """Return a version that libvirt encodes as one number: major * 1,000,000 + minor * 1,000 + release."""
    return number // 1_000_000, number // 1_000 % 1_000, number % 1_000


def _padded(version: tuple[int, ...], length: int) -> tuple[int, ...]:
    return version + (0,) * (length - len(version))
