"""Errors in nova.conf that keep a daemon from its start."""

from __future__ import annotations

from nova.errors import kinds

CatalogInfo = kinds.Invalid.row("config.catalog_info",
    "[cinder]catalog_info = {text} can not be used: it must be TYPE:NAME:INTERFACE, where NAME may be empty, for "
    "example volumev3::publicURL.")
CpuSet = kinds.Invalid.row("config.cpu_set", "nova-compute can not run with {option} = {text}: {reason}.")
Credentials = kinds.Invalid.row("config.credentials", "The credentials in [{section}] can not be used: {reason}.")
DeviceSpec = kinds.Invalid.row("config.device_spec",
    "nova-compute can not run with [pci]device_spec = {text}: {reason}.")
Ec2Url = kinds.Invalid.row("config.ec2_url",
    "keystone_ec2_url = {url} can not be used: it must be the URL of Keystone's ec2tokens, for example "
    "https://identity.example/v3/ec2tokens.")
FakeTopology = kinds.Invalid.row("config.fake_topology",
    "nova-compute can not run with [fake]topology = {text}: {reason}.")
HostSecretKey = kinds.Invalid.row("config.host_secret_key",
    "[conductor]host_secret_key {reason}: conductors need the same one, in nova-conductor.conf. Make it with: "
    "nova-manage host new-key")
ImageProxyKey = kinds.Invalid.row("config.image_proxy_key",
    "[image_proxy]key {reason}: conductors and image proxies need the same one. Make it with: openssl rand -base64 32 "
    "| tr '+/' '-_'")
KeyManager = kinds.Invalid.row("config.key_manager",
    "nova-conductor can not run with [key_manager]{option}: {reason}.")
Libvirt = kinds.Invalid.row("config.libvirt", "nova-compute can not run with {option}: {reason}.")
LibvirtConsole = kinds.Invalid.row("config.libvirt_console", "nova-compute can not run with {option}: {reason}.")
Placing = kinds.Invalid.row("config.placing", "nova-compute can not run with {option} = {value}: {reason}.")
Provider = kinds.Invalid.row("config.provider", "nova-compute can not run with {path}: {key} {reason}.")
RegionList = kinds.Invalid.row("config.region_list",
    "region_list has {row}, which can not be used: write NAME=HOST, several of them with commas.")
