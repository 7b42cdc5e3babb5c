"""Resource classes and traits that a flavor and an image require of a host, in groups.

``resources:CLASS`` overrides an amount of the flavor (0 removes it). One provider must meet all of
``resources<group>:CLASS`` and ``trait<group>:NAME`` of a group. Other settings imply features that only some hosts
have, and are translated to traits. Source: the public lists of extra specs and image properties.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nova.model.placement.providers import MOST_PARTS, RequestGroup, ResourceRequest, Traits
from nova.model.scheduling import address_space
from nova.model.scheduling.requirement_syntax import Said, choice, flag, number, said

PLAIN = frozenset({"VCPU", "MEMORY_MB", "DISK_GB"})
REQUIRED, FORBIDDEN = "required", "forbidden"
_KEY = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{0,64}):(.+)")
_SUBTREE = re.compile(r"same_subtree[a-zA-Z0-9_-]{0,64}")

Specs = Mapping[str, str]


class Features(NamedTuple):
    """Required features: traits of the host as a whole (``traits``), traits of the unnamed group, and amounts."""

    traits: Traits = ()
    unnamed_traits: Traits = ()
    amounts: Mapping[str, int] = {}


class Dedicated(NamedTuple):
    """Number of dedicated VCPUs, and whether the emulator threads have a CPU of their own."""

    vcpus: int = 0
    emulator: bool = False


class _Group:
    def __init__(self) -> None:
        self.resources: dict[str, int] = {}
        self.traits: dict[str, Said] = {}

    def wants(self, kind: str) -> Traits:
        return tuple(sorted(name for name, one in self.traits.items() if one.value == kind))

    def frozen(self, suffix: str) -> RequestGroup:
        some = {name: amount for name, amount in self.resources.items() if amount}
        return RequestGroup(suffix=suffix, resources=some,
                            required=tuple((name,) for name in self.wants(REQUIRED)), forbidden=self.wants(FORBIDDEN))


def request_of(amounts: Mapping[str, int], specs: Specs, image: Mapping[str, str],
               dedicated: Dedicated) -> ResourceRequest:
    """Return the resource request. ``amounts``: of the plain classes. Raises server.ImpossibleRequirement."""
    features = features_of(specs, image)
    groups = _groups(specs)
    unnamed = groups.setdefault("", _Group())
    asked = {**amounts, **_translated(amounts, unnamed, dedicated), **features.amounts}
    unnamed.resources = {**asked, **unnamed.resources}
    for trait, one in [*_image_traits(image), *((trait, Said("", REQUIRED)) for trait in features.unnamed_traits)]:
        if trait in unnamed.traits and unnamed.traits[trait].value == FORBIDDEN:
            flavors = unnamed.traits[trait]
            raise flavors.wrong(f"the image requires it ({one.name})" if one.name else "the server's memory is "
                                "encrypted (mem_encryption), which requires it")
        unnamed.traits[trait] = one
    subtrees = _subtrees(specs, groups)
    policy = choice(said(specs, "group_policy"), "none", "isolate") or "none"
    made = tuple(groups[suffix].frozen(suffix) for suffix in sorted(groups))
    _check_groups(made, groups, subtrees)
    request = ResourceRequest(groups=tuple(one for one in made if not one.suffix or one.resources or one.required
                                           or one.forbidden),
                              group_policy=policy, same_subtree=subtrees, root_required=features.traits)
    if request.parts > MOST_PARTS:
        first = next(Said(key, value) for key, value in specs.items() if key.startswith(("resources", "trait", "hw:")))
        raise first.wrong(f"all extra specs together request {request.parts} resources, more than {MOST_PARTS}")
    return request


def is_plain(request: ResourceRequest) -> bool:
    """Return whether the request is only for a node's VCPUs, memory and disk."""
    if len(request.groups) != 1 or request.root_required or request.root_forbidden or request.same_subtree:
        return False
    [group] = request.groups
    return not group.suffix and not group.required and not group.forbidden and PLAIN.issuperset(group.resources)


def _groups(specs: Specs) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    for key in specs:
        found = _KEY.fullmatch(key)
        one = said(specs, key)
        if found is None or one is None:
            continue
        group = groups.setdefault(found[2], _Group())
        if found[1] == "resources":
            group.resources[found[3]] = number(one)
        else:
            choice(one, REQUIRED, FORBIDDEN)
            group.traits[found[3]] = one
    return groups


def _translated(amounts: Mapping[str, int], unnamed: _Group, dedicated: Dedicated) -> Mapping[str, int]:
    """Return the amounts of PCPU and VCPU for dedicated CPUs. A flavor that sets an amount of either class overrides
    them."""
    if not dedicated.vcpus or not {"VCPU", "PCPU"}.isdisjoint(unnamed.resources):
        return {}
    return {"PCPU": dedicated.vcpus + dedicated.emulator, "VCPU": amounts["VCPU"] - dedicated.vcpus}


def _subtrees(specs: Specs, groups: Mapping[str, _Group]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of ``same_subtree<n>=<group>,<group>``: one of their providers is the ancestor of the
    others."""
    found = []
    for key in sorted(specs):
        one = said(specs, key)
        if one is None or not _SUBTREE.fullmatch(key):
            continue
        suffixes = tuple(part.strip() for part in one.value.split(","))
        for suffix in suffixes:
            if not suffix or suffix not in groups:
                raise one.wrong(f"unknown group {suffix!r} (resources{suffix}:...)")
        found.append(suffixes)
    return tuple(found)


def _check_groups(made: tuple[RequestGroup, ...], groups: Mapping[str, _Group],
                  subtrees: tuple[tuple[str, ...], ...]) -> None:
    for group in made:
        alone = group.suffix and not group.resources and not any(group.suffix in one for one in subtrees)
        if alone and groups[group.suffix].traits:
            name, one = next(iter(groups[group.suffix].traits.items()))
            raise one.wrong(f"the group has no resources (resources{group.suffix}:...) whose provider could have "
                            f"{name}")


def _image_traits(image: Mapping[str, str]) -> Iterator[tuple[str, Said]]:
    """Yield the traits of ``trait:NAME=required``, and of the list ``traits_required`` (JSON, or comma-separated)."""
    for key in sorted(image):
        if key.startswith("trait:"):
            one = Said(key, image[key].strip())
            choice(one, REQUIRED)
            yield key.removeprefix("trait:"), one
    stated = said(image, "traits_required")
    for name in _names(stated) if stated else ():
        yield name, Said("traits_required", REQUIRED)


def _names(one: Said) -> list[str]:
    if not one.value.startswith("["):
        return [part.strip() for part in one.value.split(",") if part.strip()]
    found = None
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(one.value)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise one.wrong("it must be a list of traits")
    return found


# -- features that only some hosts have

#: Extra spec, image property, and value -> required trait.
_FEATURES: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("hw:tpm_version", "hw_tpm_version", {"1.2": "COMPUTE_SECURITY_TPM_1_2", "2.0": "COMPUTE_SECURITY_TPM_2_0"}),
    ("hw:tpm_model", "hw_tpm_model", {"tpm-tis": "COMPUTE_SECURITY_TPM_TIS", "tpm-crb": "COMPUTE_SECURITY_TPM_CRB"}),
    ("os:secure_boot", "os_secure_boot", {"required": "COMPUTE_SECURITY_UEFI_SECURE_BOOT"}),
    ("hw:viommu_model", "hw_viommu_model", {model: f"COMPUTE_VIOMMU_MODEL_{model.upper()}"
                                            for model in ("intel", "smmuv3", "virtio", "auto")}),
    ("hw:maxphysaddr_mode", "hw_maxphysaddr_mode", address_space.TRAITS),
)
_ENCRYPTION = {"amd-sev": "HW_CPU_X86_AMD_SEV", "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
               "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP"}


def features_of(specs: Specs, image: Mapping[str, str]) -> Features:
    """Return the features that flavor and image imply: traits of TPM, secure boot, IOMMU and the like, persistent
    memory by its label, one context of encrypted memory. The flavor takes precedence over the image."""
    address_space.check(specs, image)
    traits = []
    for spec, name, wanted in _FEATURES:
        one = said(specs, spec) or said(image, name)
        if one is not None and one.value in wanted:
            traits.append(wanted[one.value])
    if flag(said(image, "hw_firmware_stateless")):
        traits.append("COMPUTE_SECURITY_STATELESS_FIRMWARE")
    amounts: dict[str, int] = {}
    for label in (specs.get("hw:pmem") or "").split(","):
        if label.strip():
            name = f"CUSTOM_PMEM_NAMESPACE_{label.strip().upper()}"
            amounts[name] = amounts.get(name, 0) + 1
    encryption = _encryption(specs, image)
    if encryption is not None:
        amounts["MEM_ENCRYPTION_CONTEXT"] = 1
    return Features(tuple(sorted(traits)), (encryption,) if encryption else (), amounts)


def _encryption(specs: Specs, image: Mapping[str, str]) -> str | None:
    """Return the trait of CPUs that support the server's memory encryption; None if it is not required."""
    mine, its = said(specs, "hw:mem_encryption"), said(image, "hw_mem_encryption")
    if mine is not None and its is not None and flag(mine) != flag(its):
        raise its.wrong(f"the flavor has {mine.name}={mine.value}")
    stated = mine or its
    if stated is None or not flag(stated):
        return None
    if image.get("hw_firmware_type") != "uefi":
        raise stated.wrong("the image must have hw_firmware_type=uefi")
    machine = said(image, "hw_machine_type")
    if machine is not None and "q35" not in machine.value:
        raise machine.wrong("encrypted memory requires a q35 machine type")
    model, other = said(specs, "hw:mem_encryption_model"), said(image, "hw_mem_encryption_model")
    of_flavor, of_image = choice(model, *_ENCRYPTION), choice(other, *_ENCRYPTION)
    if model is not None and other is not None and of_flavor != of_image:
        raise other.wrong(f"the flavor has {model.name}={model.value}")
    return _ENCRYPTION[of_flavor or of_image or "amd-sev"]


__all__ = ["PLAIN", "Features", "features_of", "is_plain", "request_of"]
