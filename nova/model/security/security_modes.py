"""Security modes: the isolation of a cloud's compute hosts from its control plane."""

from __future__ import annotations

import enum


class SecurityMode(enum.StrEnum):
    """Security mode of a cloud. ``bounded``: hosts are enrolled, have their own vhost on the broker, and hold no
    password of a service. ``upstream``: all services share one ``transport_url``, as deployment tools write it, and
    hosts enrol themselves."""

    BOUNDED = "bounded"
    UPSTREAM = "upstream"


#: Consequence of a compromised compute host, as the end of a sentence.
HOST_GAINS = {
    SecurityMode.BOUNDED: "an attacker who takes over a compute host gains its guests",
    SecurityMode.UPSTREAM: "an attacker who takes over a compute host gains the cloud, by the host's broker password",
}


def stated(mode: SecurityMode) -> str:
    """Return the sentence about a mode that services, ``doctor`` and ``nova-status`` print."""
    return f"The cloud is in {mode} security mode: {HOST_GAINS[mode]} (see 'Security modes' in doc/security.rst)."
