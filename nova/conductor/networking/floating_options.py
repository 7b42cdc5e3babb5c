"""What floating addresses and DNS were configured with, as one value."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from nova.clients.dns import Managers, Options


@dataclasses.dataclass(frozen=True)
class FloatingOptions:
    """Names as in nova.conf, where they are explained; ``dns``: the two drivers."""

    default_floating_pool: str = "nova"
    auto_assign_floating_ip: bool = False
    instance_dns_domain: str = ""
    dns_update_periodic_interval: int = -1
    dns: Managers = dataclasses.field(default_factory=Managers.of)


def from_conf(conf: Any) -> FloatingOptions:
    """DriverUnknown: a DNS driver can not be made."""
    ldap = {field.name: getattr(conf, field.name) for field in dataclasses.fields(Options)
            if field.name.startswith("ldap_")}
    ldap["ldap_dns_servers"] = tuple(ldap["ldap_dns_servers"])
    drivers = Managers.of(conf.floating_ip_dns_manager, conf.instance_dns_manager,
                          Options(state_path=Path(conf.state_path), **ldap))
    values = {field.name: getattr(conf, field.name) for field in dataclasses.fields(FloatingOptions)
              if field.name != "dns"}
    return FloatingOptions(**values, dns=drivers)


__all__ = ["FloatingOptions", "from_conf"]
