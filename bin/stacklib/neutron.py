"""Neutron: its files, tables and API, and the networks of a new cloud.

Ports are bound immediately, without agents (`bind_at_once`): the API is complete, but guests' frames do not leave
their host.
"""

from __future__ import annotations

from pathlib import Path

from . import databases, gunicorn, identity, memcached, rabbitmq, venvs
from .credentials import PROJECTS
from .httpjson import Service
from .keystone import REGION
from .layout import GUEST_CIDR, GUEST_GATEWAY, Layout, write_private
from .secrets import Secrets
from .spec import Daemon
from .stack import SERVICE_USER, Stack

PRIVATE, PUBLIC, ROUTER = "private", "public", "router"
PUBLIC_CIDR, PUBLIC_GATEWAY = "172.24.4.0/24", "172.24.4.1"
POOL, POOL_CIDR = "guests", "10.220.0.0/16"  # subnet pool for auto-allocated networks of projects without a network
PHYSICAL_NETWORKS = ("public", "physnet1")
PLUGINS = ("router", "qos", "tag", "auto_allocate", "segments", "network_ip_availability", "revisions", "timestamp")
EXTENSIONS = ("port_security", "qos", "dns_domain_ports", "uplink_status_propagation", "port_numa_affinity_policy")
QUOTAS = ("network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule")


def settings(layout: Layout, secrets: Secrets) -> str:
    """Return neutron.conf, including ML2's options. Events are sent to nova at the shortest interval, since builds
    wait for them."""
    state = layout.data / "neutron"
    return f"""\
[DEFAULT]
use_stderr = true
state_path = {state}
api_paste_config = {layout.venvs}/neutron/etc/neutron/api-paste.ini
transport_url = {rabbitmq.neutron_url(layout, secrets)}
core_plugin = ml2
service_plugins = {",".join(PLUGINS)}
auth_strategy = keystone
dns_domain = example.org.
allow_overlapping_ips = true
notify_nova_on_port_status_changes = true
notify_nova_on_port_data_changes = true
send_events_interval = 1
[database]
connection = {databases.url(layout, secrets, "neutron")}
max_pool_size = 5
max_overflow = 20
[oslo_concurrency]
lock_path = {state}/locks
[keystone_authtoken]
www_authenticate_uri = {layout.url("keystone")}
{_credentials(layout, secrets, "neutron")}
memcached_servers = {memcached.address(layout)}
service_token_roles_required = true
[nova]
{_credentials(layout, secrets, "neutron")}
[placement]
{_credentials(layout, secrets, "neutron")}
[quotas]
{chr(10).join(f"quota_{name} = -1" for name in QUOTAS)}
[ml2]
type_drivers = local,flat,vlan,vxlan
tenant_network_types = vxlan
mechanism_drivers = {mechanism(layout)}
extension_drivers = {",".join(EXTENSIONS)}
[ml2_type_flat]
flat_networks = {",".join(PHYSICAL_NETWORKS)}
[ml2_type_vlan]
network_vlan_ranges = physnet1:100:299
[ml2_type_vxlan]
vni_ranges = 1:4000
[securitygroup]
enable_security_group = true
"""


def mechanism(layout: Layout) -> str:
    return "bind_at_once"


def _credentials(layout: Layout, secrets: Secrets, user: str) -> str:
    return "\n".join(f"{name} = {value}" for name, value in credentials(layout, secrets, user).items())


def credentials(layout: Layout, secrets: Secrets, user: str) -> dict[str, str]:
    """Return the keystoneauth options of a service user."""
    return {
        "auth_type": "password",
        "auth_url": layout.url("keystone"),
        "username": user,
        "password": secrets.password(user),
        "user_domain_id": "default",
        "project_name": "service",
        "project_domain_id": "default",
        "region_name": REGION,
    }


def _file(layout: Layout) -> Path:
    return layout.etc / "neutron" / "neutron.conf"


def prepare(stack: Stack) -> str:
    layout = stack.layout
    stack.directory("etc", "neutron", owner=SERVICE_USER)
    for name in ("", "locks"):
        stack.directory("data", "neutron", name, owner=SERVICE_USER)
    write_private(_file(layout), settings(layout, stack.secrets), owner=SERVICE_USER)
    fingerprint = venvs.stamp(layout, "neutron") + layout.choices.database
    if stack.done("neutron", fingerprint):
        return "unchanged"
    databases.begin_tables(stack, "neutron")
    program = layout.program("neutron", "neutron-db-manage")
    stack.command(
        "neutron",
        [program, "--config-file", str(_file(layout)), "upgrade", "heads"],
        env={"PYTHONWARNINGS": "ignore"},
        user=SERVICE_USER,
    )
    stack.mark_done("neutron", fingerprint)
    return "tables made"


def daemon(stack: Stack) -> Daemon:
    file = _file(stack.layout)
    found = {"OS_NEUTRON_CONFIG_DIR": str(file.parent), "OS_NEUTRON_CONFIG_FILES": file.name}
    served, server_file = gunicorn.daemon(stack.layout, "neutron", found, "/", venv="neutron")
    return served.stamped(file, server_file, extra=venvs.stamp(stack.layout, "neutron"))


# --- the first networks ----------------------------------------------------------------------------------------------


def prepare_networks(stack: Stack) -> str:
    """Create the demo project's network behind a router, and the external network with the floating addresses."""
    if stack.done("neutron-networks", GUEST_CIDR):
        return "unchanged"
    stack.at_controller(lambda: _make_networks(stack))
    stack.mark_done("neutron-networks", GUEST_CIDR)
    return f"{PRIVATE} {GUEST_CIDR}, {PUBLIC} {PUBLIC_CIDR}"


def _make_networks(stack: Stack) -> None:
    admin, demo = (_as(stack, user) for user in ("admin", "demo"))
    outside = {"router:external": True, "is_default": True, "provider:network_type": "flat",
               "provider:physical_network": PUBLIC}
    public = _ensure(admin, "network", {"name": PUBLIC, **outside})
    _ensure_subnet(admin, public, PUBLIC_CIDR, PUBLIC_GATEWAY, dhcp=False)
    _ensure(admin, "subnetpool", {"name": POOL, "prefixes": [POOL_CIDR], "default_prefixlen": 26, "shared": True,
                                  "is_default": True})
    private = _ensure(demo, "network", {"name": PRIVATE})
    subnet = _ensure_subnet(demo, private, GUEST_CIDR, GUEST_GATEWAY, dhcp=True)
    router = _ensure(demo, "router", {"name": ROUTER, "external_gateway_info": {"network_id": public}})
    # 400: the interface exists already
    demo.call("PUT", f"/routers/{router}/add_router_interface", {"subnet_id": subnet}, accept=(400,))


def _as(stack: Stack, user: str) -> Service:
    layout = stack.layout
    value, _ = identity.token(layout, user, PROJECTS[user], stack.secrets.password(user))
    return Service("neutron", layout.url("neutron", "/v2.0")).with_headers(X_Auth_Token=value)


def _ensure(neutron: Service, kind: str, wanted: dict) -> str:
    """Return the id of the resource with the wanted name; create it if it is missing."""
    found = neutron.get(f"/{kind}s?name={wanted['name']}")[f"{kind}s"]
    return found[0]["id"] if found else neutron.post(f"/{kind}s", {kind: wanted})[kind]["id"]


def _ensure_subnet(neutron: Service, network: str, cidr: str, gateway: str, dhcp: bool) -> str:
    found = neutron.get(f"/subnets?network_id={network}")["subnets"]
    if found:
        return found[0]["id"]
    wanted = {"network_id": network, "ip_version": 4, "cidr": cidr, "gateway_ip": gateway, "enable_dhcp": dhcp}
    return neutron.post("/subnets", {"subnet": wanted})["subnet"]["id"]
