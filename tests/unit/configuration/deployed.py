"""nova.conf as a deployment tool renders it: with every option that its template can write, of installers.yaml, and
values of our own where these are placeholders."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg, types

from nova import conf
from nova.conf import logs, proxies
from nova.configuration import libraries
from tests.contract.rows import load

Files = dict[str, dict[str, str]]

TOOLS = ("ka", "osa", "ds", "osh", "op", "pn", "ch")
BROKER = "rabbit://nova:s3cret@192.0.2.1:5672,nova:s3cret@192.0.2.2:5672/nova"
DATABASE = "mysql+pymysql://nova:s3cret@192.0.2.3/nova?charset=utf8"
CREDENTIALS = {"auth_type": "password", "auth_url": "http://192.0.2.1:5000/v3", "username": "nova",
               "password": "s3cret", "project_name": "service", "project_domain_name": "Default",
               "user_domain_name": "Default",
               "region_name": "RegionOne", "cafile": "/etc/ssl/ca.pem", "insecure": "false"}
#: Of ``credentials.unknown_here``: what some tools write beside these.
MORE_CREDENTIALS = {"ka": {"service_user": {"valid_interfaces": "internal"}},
                    "ds": {name: {"interface": "public"} for name in ("neutron", "cinder", "service_user")},
                    "osh": {"neutron": {"auth_version": "v3"},
                            "keystone_authtoken": {"auth_uri": "http://192.0.2.1:5000"}},
                    "ch": {"keystone_authtoken": {"auth_uri": "http://192.0.2.1:5000"}}}
#: Values of options whose row has none that can stand in a file.
VALUES = {
    "[DEFAULT]transport_url": BROKER, "[oslo_messaging_notifications]transport_url": BROKER,
    "[database]connection": DATABASE, "[api_database]connection": DATABASE,
    "[DEFAULT]logging_context_format_string": "%(color)s%(levelname)s %(name)s [%(request_id)s] %(message)s",
    "[DEFAULT]logging_default_format_string": "%(color)s%(levelname)s %(name)s [-] %(instance)s%(message)s",
    "[DEFAULT]logging_debug_format_suffix": "{{%(funcName)s %(pathname)s:%(lineno)d}}",
    "[DEFAULT]logging_exception_prefix": "ERROR %(name)s ", "[pci]alias": '{"vendor_id": "8086", "product_id": "1520", '
    '"name": "a1"}', "[pci]passthrough_whitelist": '[{"address": "0000:81:00.0"}]', "[pci]device_spec":
    '{"address": "0000:81:00.0"}', "[libvirt]rbd_secret_uuid": "457eb676-33da-42ec-9a8c-9293d545c337",
    "[notifications]notification_format": "both", "[libvirt]cpu_mode": "custom", "[libvirt]images_type": "rbd",
    "[DEFAULT]config_drive_format": "iso9660", "[DEFAULT]network_manager": "nova.network.manager.FlatDHCPManager",
    "[DEFAULT]firewall_driver": "nova.virt.firewall.NoopFirewallDriver", "[DEFAULT]default_log_levels": "amqp=WARN",
    "[DEFAULT]compute_monitors": "nova.compute.monitors.cpu.virt_driver",
    "[quota]driver": "nova.quota.UnifiedLimitsDriver",
    "[DEFAULT]log_config_append": "", "[DEFAULT]reserved_huge_pages": "node:0,size:2048,count:64",
    "[key_manager]fixed_key": "00" * 32, "[serial_console]port_range": "10000:20000",
    "[DEFAULT]log_rotation_type": "size", "[os_vif_ovs]ovsdb_connection": "tcp:127.0.0.1:6640",
    "[DEFAULT]novncproxy_base_url": "https://192.0.2.1:6080/vnc_lite.html", "[libvirt]num_memory_encrypted_guests": "4",
    "[console]ssl_minimum_version": "tlsv1_2", "[compute]cpu_shared_set": "0-3", "[compute]cpu_dedicated_set": "4-7",
    "[vnc]xvpvncproxy_base_url": "http://192.0.2.1:6081/console", "[libvirt]cpu_model": "Haswell",
    "[spice]streaming_mode": "filter", "[spice]image_compression": "auto_glz", "[spice]jpeg_compression": "auto",
    "[spice]zlib_compression": "auto"}
_PLACEHOLDERS = (("ADDRESS", "192.0.2.10"), ("HOST", "192.0.2.1"), ("FQDN", "compute1.example"), ("SECRET", "s3cret"),
                 ("URL", "http://192.0.2.1:9999"), ("PATH", "/etc/ssl/x.pem"), ("PORT", "6083"), ("NAME", "one"),
                 ("UUID", "457eb676-33da-42ec-9a8c-9293d545c337"), ("SET", "4-7"), ("KEY", "/x"))


def rendered(tool: str) -> Files:
    """Section -> option -> value, of all that the tool writes."""
    options: Mapping[str, Any] = load("installers.yaml")["options"]
    found: Files = {}
    for section, tools in options["credentials"].items():
        if section.startswith("[") and tool in tools:
            found.setdefault(section.strip("[]"), {}).update(CREDENTIALS)
    for section, more in MORE_CREDENTIALS.get(tool, {}).items():
        found.setdefault(section, {}).update(more)
    for row in options["rows"]:
        if tool in row["by"]:
            section, name = row["o"][1:].split("]", 1)
            found.setdefault(section, {})[name] = VALUES.get(row["o"], _filled(str(row["v"]), tool))
    for section, names in re.findall(r"\[(\w+)\] ([^;]+)", options["known_and_set_by_one_tool"].get(tool, "")):
        for name in names.split():
            key = f"[{section}]{name}"
            found.setdefault(section, {})[name] = VALUES[key] if key in VALUES else usual(section, name)
    if {"cpu_model", "cpu_models"}.isdisjoint(found["libvirt"]):  # which need the mode custom, in upstream, too
        found["libvirt"]["cpu_mode"] = "host-model"
    return found


def _filled(value: str, tool: str) -> str:
    """One value of those that a row shows: the tool's own where it says whose each is."""
    own = re.search(rf"(\S+) \({tool}\)", value)
    value = own[1] if own else re.split(r" \(|, ", value)[0]
    for word, sense in _PLACEHOLDERS:
        value = value.replace(word, sense)
    return "4" if value == "N" else value


@functools.cache
def _declared() -> dict[tuple[str, str], cfg.Opt]:
    every = {section for sections in libraries.LISTS.values() for section in sections}
    found: dict[tuple[str, str], cfg.Opt] = {}
    for group, option in (*((group, option) for group, options in conf.list_opts() for option in options),
                          *(("DEFAULT", option) for option in (*logs.CLI_OPTS, *proxies.CLI_OPTS)),
                          *libraries.declared(every)):
        for name in (option.dest, *(old.name for old in option.deprecated_opts if old.name)):
            found.setdefault((group, name), option)
        for old in option.deprecated_opts:
            found.setdefault((old.group or group, old.name or option.dest), option)
    return found


def usual(section: str, name: str) -> str:
    """A value that the option's type takes: its default, else one of the kind."""
    option = _declared()[section, name]
    default = option.default
    if isinstance(default, list):
        return ",".join(map(str, default))
    if default not in (None, ""):
        return str(default)
    if isinstance(option.type, types.Boolean):
        return "false"
    return str(option.type.min or 1) if isinstance(option.type, types.Number) else "/x"


def text_of(files: Files) -> str:
    """The file. oslo.config reads a dollar sign as a reference, and none of ours has one."""
    return "\n".join(f"[{section}]\n" + "\n".join(f"{name} = {value}" for name, value in options.items())
                     for section, options in files.items()) + "\n"
