"""``[quota]``: the default limits of a project. -1 is unlimited."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "quota"

_DEFAULTS = (
    ("instances", 10, "servers"), ("cores", 20, "virtual CPUs"), ("ram", 51200, "MB of memory"),
    ("metadata_items", 128, "metadata items per server"), ("injected_files", 5, "injected files per server"),
    ("injected_file_content_bytes", 10240, "bytes per injected file"),
    ("injected_file_path_length", 255, "bytes in an injected file's path"), ("key_pairs", 100, "key pairs per user"),
    ("server_groups", 10, "server groups"), ("server_group_members", 10, "servers per server group"),
)

#: Limits of nova-network's resources.
_NETWORK_DEFAULTS = (
    ("fixed_ips", -1, "fixed addresses of servers (not counted with VlanManager)"), ("floating_ips", 10,
     "floating IPs"), ("networks", 3, "networks created with os-tenant-networks (see enable_network_quota)"),
    ("security_groups", 10, "security groups"), ("security_group_rules", 20, "rules per security group"),
)
NETWORK_LIMITS = tuple(name for name, _default, _what in _NETWORK_DEFAULTS)

#: The options that are limits.
LIMITS = tuple(name for name, _default, _what in _DEFAULTS)
#: Drivers that store limits, by upstream's names.
WRITTEN, NOOP, UNIFIED = (f"nova.quota.{name}" for name in ("DbQuotaDriver", "NoopQuotaDriver", "UnifiedLimitsDriver"))

OPTS = [
    cfg.StrOpt("driver", default=WRITTEN, choices=(WRITTEN, NOOP, UNIFIED),
               help="Storage of limits: nova's database (DbQuotaDriver), none (NoopQuotaDriver: no limits apply), or "
                    "Keystone (UnifiedLimitsDriver; see [oslo_limit])."),
    cfg.StrOpt("unified_limits_resource_strategy", default="require", choices=("require", "ignore"),
               help="Limit of resources without a registered limit in Keystone. require: 0 for those in "
                    "unified_limits_resource_list, unlimited for others. ignore: unlimited for those in the list, 0 "
                    "for others."),
    cfg.ListOpt("unified_limits_resource_list", default=["servers"],
                help="Resources of unified_limits_resource_strategy: servers, class:VCPU, class:MEMORY_MB, ..."),
    *[cfg.IntOpt(name, default=default, min=-1, deprecated_group="DEFAULT", deprecated_name=f"quota_{name}",
                 help=f"Maximum number of {what}.") for name, default, what in _DEFAULTS],
    *[cfg.IntOpt(name, default=default, min=-1, deprecated_group="DEFAULT", deprecated_name=f"quota_{name}",
                 help=f"nova-network: maximum number of {what}.") for name, default, what in _NETWORK_DEFAULTS],
]

#: Option name -> the API's name of the resource, if they differ.
API_NAMES = {"injected_file_path_length": "injected_file_path_bytes"}
#: Limits of nova-network's resources that old API versions list when Neutron is used.
NETWORK_DEFAULTS = {"fixed_ips": -1, "floating_ips": -1, "networks": 3, "security_groups": -1,
                    "security_group_rules": -1}


class QuotaOptions(Section, frozen=True, kw_only=True):
    """Values of ``[quota]``."""

    driver: str
    unified_limits_resource_strategy: str
    unified_limits_resource_list: list[str]
    instances: int
    cores: int
    ram: int
    metadata_items: int
    injected_files: int
    injected_file_content_bytes: int
    injected_file_path_length: int
    key_pairs: int
    server_groups: int
    server_group_members: int
    fixed_ips: int
    floating_ips: int
    networks: int
    security_groups: int
    security_group_rules: int
