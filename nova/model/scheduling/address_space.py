"""Number of physical address bits of a guest: requests of flavor and image, and the traits of suitable hosts.

A guest whose devices map much memory needs more bits than QEMU's default. The flavor takes precedence over the image,
for mode and number each. Source: the public lists of extra specs and image properties.
"""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.flavor.extra_specs import SPECS
from nova.model.scheduling.requirement_syntax import Said, choice, number, said

MODE, BITS = "maxphysaddr_mode", "maxphysaddr_bits"
#: Mode -> trait of hosts that support it.
TRAITS = {"passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH", "emulate": "COMPUTE_ADDRESS_SPACE_EMULATED"}
_RULE = SPECS[f"hw:{BITS}"][0]
LEAST, MOST = _RULE.min or 0, _RULE.max or 0

Properties = Mapping[str, str]


def check(specs: Properties, image: Properties) -> None:
    """Check mode and number. Raises server.ImpossibleRequirement if the mode is unknown or no CPU has so many bits."""
    choice(_said(specs, image, MODE), *TRAITS)
    bits = _said(specs, image, BITS)
    if bits is not None:
        number(bits, LEAST, MOST)


def bits_of(specs: Properties, image: Properties) -> int:
    """Return the least number of bits that a host must have; 0 if the number is not set or invalid."""
    bits = _said(specs, image, BITS)
    return int(bits.value) if bits is not None and bits.value.isdecimal() else 0


def _said(specs: Properties, image: Properties, name: str) -> Said | None:
    return said(specs, f"hw:{name}") or said(image, f"hw_{name}")


__all__ = ["LEAST", "MOST", "TRAITS", "bits_of", "check"]
