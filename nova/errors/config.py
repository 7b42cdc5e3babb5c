"""Errors of the configuration: nova.conf, a file that it names, or a program's command line.

None has a part of an option's value: it may be a password, or a password in the wrong place.
"""

from __future__ import annotations

from nova.errors import kinds

#: Base of them all. No retry helps, so a program that meets one ends with 2, and systemd does not start it again.
Wrong = kinds.Invalid.row("config.wrong", "{reason}",
    "Correct the option that the message names, and start the daemon again.")

CatalogInfo = Wrong.row("config.catalog_info",
    "[cinder]catalog_info cannot be used: it must be TYPE:NAME:INTERFACE, where NAME may be empty, for example "
    "volumev3::publicURL.")
Choice = Wrong.row("config.choice", "{option} cannot be used: it must be one of {known}.")
CpuSet = Wrong.row("config.cpu_set", "nova-compute cannot run with this {option}: {reason}.")
Credentials = Wrong.row("config.credentials", "The credentials in [{section}] cannot be used: {reason}.")
DeviceSpec = Wrong.row("config.device_spec", "nova-compute cannot run with this [pci]device_spec: {reason}.")
Ec2Url = Wrong.row("config.ec2_url",
    "[DEFAULT]keystone_ec2_url cannot be used: it must be the URL of Keystone's ec2tokens, for example "
    "https://identity.example/v3/ec2tokens.")
FakeTopology = Wrong.row("config.fake_topology", "nova-compute cannot run with this [fake]topology: {reason}.")
GeneratedKey = Wrong.row("config.generated_key",
    "The generated key of hosts' secrets cannot be opened. The passwords in [database]connection and "
    "[DEFAULT]transport_url have both changed since nova-conductor ran last. Start nova-conductor once with one of the "
    "old passwords; or run 'nova-manage host readmit --all', which gives up the secrets")
HostSecretKey = Wrong.row("config.host_secret_key",
    "[conductor]host_secret_key {reason}: conductors need the same one, in nova-conductor.conf. Make it with: "
    "nova-manage host new-key")
ImageProxyKey = Wrong.row("config.image_proxy_key",
    "[image_proxy]key {reason}: conductors and image proxies need the same one. Make it with: openssl rand -base64 32 "
    "| tr '+/' '-_'")
KeyManager = Wrong.row("config.key_manager", "nova-conductor cannot run with this [key_manager]{option}: {reason}.")
LeavesBoundedMode = Wrong.row("config.leaves_bounded_mode",
    "The cloud is in bounded security mode, and this configuration has none of its options. Set "
    "[DEFAULT]hosts_transport_url{others} as before. To leave bounded mode on purpose, see 'Security modes' in "
    "doc/security.rst")
Libvirt = Wrong.row("config.libvirt", "nova-compute cannot run with this {option}: {reason}.")
LibvirtConsole = Wrong.row("config.libvirt_console", "nova-compute cannot run with this {option}: {reason}.")
Missing = Wrong.row("config.missing", "{option} is not set: {cure}.")
Placing = Wrong.row("config.placing", "nova-compute cannot run with this {option}: {reason}.")
Provider = Wrong.row("config.provider", "nova-compute cannot run with {path}: {key} {reason}.")
RegionList = Wrong.row("config.region_list",
    "[DEFAULT]region_list cannot be used: write NAME=HOST, several of them with commas.")
Unusable = Wrong.row("config.unusable", "{option} cannot be used: {reason}.")


def exit_status(error: kinds.NovaError) -> int:
    """How a program ends that cannot start: 2 where its configuration is wrong, 1 where another start may succeed."""
    return 2 if isinstance(error, Wrong) else 1
