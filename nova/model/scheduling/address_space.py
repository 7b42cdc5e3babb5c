"""How many bits the physical addresses of a guest have: what flavor and image ask for, and of which hosts.

A guest whose devices map much memory needs more bits than QEMU gives it by itself. The flavor's word stands above the
image's, for the mode and for the number each. Source: the public lists of extra specs and image properties.
"""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.flavor.extra_specs import SPECS
from nova.model.scheduling.requirement_syntax import Said, choice, number, said

MODE, BITS = "maxphysaddr_mode", "maxphysaddr_bits"
#: Mode -> the trait of hosts whose guests can have it.
TRAITS = {"passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH", "emulate": "COMPUTE_ADDRESS_SPACE_EMULATED"}
_RULE = SPECS[f"hw:{BITS}"][0]
LEAST, MOST = _RULE.min or 0, _RULE.max or 0

Properties = Mapping[str, str]


def check(specs: Properties, image: Properties) -> None:
    """server.ImpossibleRequirement: there is no such mode, or no processor has so many bits."""
    choice(_said(specs, image, MODE), *TRAITS)
    bits = _said(specs, image, BITS)
    if bits is not None:
        number(bits, LEAST, MOST)


def bits_of(specs: Properties, image: Properties) -> int:
    """The bits a host must have at least; 0 where nothing is asked for, or nothing that is a number."""
    bits = _said(specs, image, BITS)
    return int(bits.value) if bits is not None and bits.value.isdecimal() else 0


def _said(specs: Properties, image: Properties, name: str) -> Said | None:
    return said(specs, f"hw:{name}") or said(image, f"hw_{name}")


__all__ = ["LEAST", "MOST", "TRAITS", "bits_of", "check"]
