"""Guest processors on a host: modes, models, features, and the standard traits of features."""

from __future__ import annotations

from collections.abc import Iterable

from nova.virt.libvirt.host.facts import HypervisorFacts
from nova.virt.libvirt.settings import LibvirtSettings
from nova.virt.libvirt.xml.capabilities import DomainCapabilities
from nova.virt.libvirt.xml.domain import X86

_SAME = ("AVX AVX2 FMA4 F16C MMX SSE SSE2 SSE3 SSSE3 SSE4A XOP 3DNOW AVX512F AVX512CD AVX512PF AVX512ER AVX512VL "
         "AVX512BW AVX512DQ AVX512VNNI AVX512VBMI AVX512IFMA AVX512VBMI2 AVX512BITALG ABM BMI2 TBM MPX SGX VMX SVM "
         "PDPE1GB STIBP")
_OTHER = {"CLMUL": "pclmuldq", "FMA3": "fma", "SSE41": "sse4.1", "SSE42": "sse4.2", "SSE3": "pni", "BMI": "bmi1",
          "AESNI": "aes", "SHA": "sha-ni", "TSX": "rtm", "AVX512VAES": "vaes", "AVX512GFNI": "gfni",
          "AVX512VPCLMULQDQ": "vpclmulqdq", "AVX512VPOPCNTDQ": "avx512-vpopcntdq", "AVX512VBMI2": "avx512vbmi2",
          "AVX512BITALG": "avx512bitalg", "AVX512IFMA": "avx512ifma", "AMXBF16": "amx-bf16", "AMXINT8": "amx-int8",
          "AMXTILE": "amx-tile", "AMD_SVM": "svm", "AMD_IBPB": "ibpb", "AMD_NO_SSB": "amd-no-ssb",
          "AMD_SSBD": "amd-ssbd", "AMD_VIRT_SSBD": "virt-ssbd", "INTEL_MD_CLEAR": "md-clear", "INTEL_PCID": "pcid",
          "INTEL_SPEC_CTRL": "spec-ctrl", "INTEL_SSBD": "ssbd", "INTEL_VMX": "vmx"}

#: Trait -> feature of an x86 processor.
FEATURES: dict[str, str] = {f"HW_CPU_X86_{name}": feature
                            for name, feature in {**{name: name.lower() for name in _SAME.split()}, **_OTHER}.items()}


def traits_of(features: Iterable[str]) -> frozenset[str]:
    """Return the traits of a processor that has these features."""
    have = set(features)
    return frozenset(trait for trait, feature in FEATURES.items() if feature in have)


def mode_of(settings: LibvirtSettings, host: HypervisorFacts) -> str:
    """Return libvirt's ``mode`` of a guest's ``cpu`` element; none: QEMU's default processor. Never host-passthrough
    without KVM."""
    kvm = host.virt_type == "kvm"
    mode = settings.cpu_mode or ("host-model" if kvm else "none")
    if not kvm and mode == "host-passthrough":
        mode = "none"  # without KVM, the host's processor cannot be passed through
    return mode


def address_modes(settings: LibvirtSettings, host: HypervisorFacts) -> frozenset[str]:
    """Return the possible sources of a guest's number of physical address bits: libvirt's ``mode`` of ``maxphysaddr``.
    libvirt supports it on x86 from 8.7 on, and then reports the host's number; QEMU without KVM has a fixed one."""
    if host.arch not in X86 or host.virt_type != "kvm" or not host.address_bits:
        return frozenset()
    passed = mode_of(settings, host) == "host-passthrough"
    return frozenset({"emulate", "passthrough"} if passed else {"emulate"})


def usable_models(models: Iterable[str], abilities: DomainCapabilities) -> tuple[str, ...]:
    """Return the usable models, in order; all of them if libvirt does not report any."""
    return tuple(model for model in models if not abilities.cpu_models or model in abilities.cpu_models)


def guest_features(settings: LibvirtSettings, host: HypervisorFacts, own: frozenset[str],
                          abilities: DomainCapabilities) -> frozenset[str]:
    """Return the features that any guest here can have; ``own`` are those of the host's processor."""
    mode = mode_of(settings, host)
    if mode == "custom":
        models = usable_models(settings.cpu_models, abilities)
        found = frozenset().union(*(host.cpu_features.get(model, frozenset()) for model in models))
    else:
        found = own if mode in ("host-model", "host-passthrough") and host.virt_type == "kvm" else frozenset()
    added, removed = flags_of(settings)
    return frozenset() if mode == "none" else (found | added) - removed


def flags_of(settings: LibvirtSettings) -> tuple[frozenset[str], frozenset[str]]:
    """Return the features that the operator adds, and the features that the operator removes."""
    added = frozenset(flag.lstrip("+") for flag in settings.cpu_flags if not flag.startswith("-"))
    return added, frozenset(flag[1:] for flag in settings.cpu_flags if flag.startswith("-"))
