"""Errors in the configuration: nova.conf, a file that it names, or a program's command line.

No message contains any part of an option's value, because it may be a password, or a password in the wrong place.
"""

from __future__ import annotations

from nova.errors import kinds

#: Base of all configuration errors. Retries do not help, so a program that gets one exits with status 2, and systemd
#: does not restart it.
Wrong = kinds.Invalid.row("config.wrong", "{reason}",
    "Correct the option that the message names, and start the daemon again.")

CatalogInfo = Wrong.row("config.catalog_info",
    "[cinder]catalog_info cannot be used: it must be TYPE:NAME:INTERFACE, where NAME may be empty, for example "
    "volumev3::publicURL.")
CellUrlSealed = Wrong.row("config.cell_url_sealed",
    "The recorded {column} of cell {cell} cannot be decrypted, neither with [conductor]host_secret_key nor with the "
    "generated key, which the password in [api_database]connection decrypts. Add the key that encrypted it behind the "
    "first key; or record the URLs again with: nova-manage cell_v2 update_cell --cell_uuid {cell}")
Choice = Wrong.row("config.choice", "{option} cannot be used: it must be one of {known}.")
CpuSet = Wrong.row("config.cpu_set", "nova-compute cannot run with this {option}: {reason}.")
Credentials = Wrong.row("config.credentials", "The credentials in [{section}] cannot be used: {reason}.")
DeviceSpec = Wrong.row("config.device_spec", "nova-compute cannot run with this [pci]device_spec: {reason}.")
Ec2Url = Wrong.row("config.ec2_url",
    "[DEFAULT]keystone_ec2_url cannot be used: it must be the URL of Keystone's ec2tokens, for example "
    "https://identity.example/v3/ec2tokens.")
FakeTopology = Wrong.row("config.fake_topology", "nova-compute cannot run with this [fake]topology: {reason}.")
GeneratedKey = Wrong.row("config.generated_key",
    "The generated key of host secrets cannot be decrypted. The passwords in [database]connection and "
    "[DEFAULT]transport_url have both changed since nova-conductor ran last. Start nova-conductor once with one of the "
    "old passwords; or run 'nova-manage host readmit --all', which discards the secrets")
GeneratedCellKey = Wrong.row("config.generated_cell_key",
    "The generated key of cells' URLs cannot be decrypted: the password in [api_database]connection differs from the "
    "password that encrypted it. Use the same password on all conductors, or set [conductor]host_secret_key there. If "
    "the password has changed, record the URLs of each cell again with: nova-manage cell_v2 update_cell")
HostSecretKey = Wrong.row("config.host_secret_key",
    "[conductor]host_secret_key {reason}: all conductors need the same key, in nova-conductor.conf. Generate it with: "
    "nova-manage host new-key")
ImageProxyKey = Wrong.row("config.image_proxy_key",
    "[image_proxy]key {reason}: all conductors and image proxies need the same key. Generate it with: openssl rand "
    "-base64 32 | tr '+/' '-_'")
KeyManager = Wrong.row("config.key_manager", "nova-conductor cannot run with this [key_manager]{option}: {reason}.")
LeavesBoundedMode = Wrong.row("config.leaves_bounded_mode",
    "The cloud is in bounded security mode, but this configuration has none of its options. Set "
    "[DEFAULT]hosts_transport_url{others} as before. To leave bounded mode on purpose, see 'Security modes' in "
    "doc/security.rst")
Libvirt = Wrong.row("config.libvirt", "nova-compute cannot run with this {option}: {reason}.")
LibvirtConsole = Wrong.row("config.libvirt_console", "nova-compute cannot run with this {option}: {reason}.")
Missing = Wrong.row("config.missing", "{option} is not set: {cure}.")
Placing = Wrong.row("config.placing", "nova-compute cannot run with this {option}: {reason}.")
Provider = Wrong.row("config.provider", "nova-compute cannot run with {path}: {key} {reason}.")
RegionList = Wrong.row("config.region_list",
    "[DEFAULT]region_list cannot be used: it must be a comma-separated list of NAME=HOST.")
Unusable = Wrong.row("config.unusable", "{option} cannot be used: {reason}.")


def exit_status(error: kinds.NovaError) -> int:
    """Exit status of a program that cannot start: 2 if its configuration is wrong, 1 if another start may succeed."""
    return 2 if isinstance(error, Wrong) else 1
