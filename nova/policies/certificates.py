"""Rules of the operations on certificates, which only /v2 has (``nova.api.legacy_v2``)."""

from __future__ import annotations

from nova.policies.base import MEMBER, READER, Rule

RULES: tuple[Rule, ...] = (
    Rule("os_compute_api:os-certificates:create", MEMBER, ("POST /os-certificates",)),
    Rule("os_compute_api:os-certificates:show", READER, ("GET /os-certificates/{id}",)),
)
