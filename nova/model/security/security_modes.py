"""How far a cloud keeps its compute hosts apart from its control plane."""

from __future__ import annotations

import enum


class SecurityMode(enum.StrEnum):
    """``bounded``: hosts are enrolled, have a vhost of their own on the broker, and hold no password of a service.
    ``upstream``: one ``transport_url`` serves all daemons, as deployment tools write it, and a host enrols itself."""

    BOUNDED = "bounded"
    UPSTREAM = "upstream"


#: What an attacker gains who takes over one compute host: the end of a sentence.
HOST_GAINS = {
    SecurityMode.BOUNDED: "an attacker who takes over a compute host gains its guests",
    SecurityMode.UPSTREAM: "an attacker who takes over a compute host gains the cloud, by the host's broker password",
}


def stated(mode: SecurityMode) -> str:
    """The sentence that daemons, ``doctor`` and ``nova-status`` say of a mode."""
    return f"The cloud is in {mode} security mode: {HOST_GAINS[mode]} (see 'Security modes' in doc/security.rst)."
