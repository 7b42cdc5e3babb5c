"""VPN servers (cloudpipe): one per project, at the address that the project's network reserves for it.

A VPN server is an ordinary server of the image ``vpn_image_id``. Its user data configures the VPN, and nova-network's
rules forward the network's public port to it (OpenStack administrator guide, cloudpipe).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import ipaddress
import string
import uuid as uuids
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from nova import context, errors, failures
from nova.conductor.engine.deps import NO_VPN, Deps, VpnSettings
from nova.conductor.quota.projects import check_project
from nova.db import flavors, keypairs
from nova.db.network import networks
from nova.db.sql.engine import Connection
from nova.model.base import Page, Scope
from nova.model.flavor.flavors import FlavorQuery
from nova.model.network.networks import Network, RequestedNetwork
from nova.model.network.security_groups import NewSecurityGroup, NewSecurityRule, SecurityGroupQuery
from nova.model.security.certificates import Cloudpipe, VpnCredentials
from nova.model.server.keypairs import NewKeypair
from nova.model.server.servers import Condition, CreatedServers, NewServer, ServerDetail, ServerListQuery, ServerPage
from nova.model.server.states import VmState

OPEN = (("udp", 1194, 1194), ("icmp", -1, -1))  # traffic of clients and of health checks
STATES = {VmState.BUILDING.value: "pending", VmState.ACTIVE.value: "running"}
NAMESPACE = uuids.UUID("6f1f5b9e-6f5c-4f0e-9a5e-0d4b0b1f5a10")  # of the idempotency keys of creates

BOOT_SCRIPT = """#!/bin/sh
# Runs in the directory of the files that came with it: ca.crt, server.crt, server.key and crl.pem.
set -e
cp ca.crt server.crt server.key crl.pem /etc/openvpn/
chmod 600 /etc/openvpn/server.key
[ -e /etc/openvpn/dh.pem ] || openssl dhparam -out /etc/openvpn/dh.pem 2048
cat > /etc/openvpn/server.conf <<END
port 1194
proto udp
dev tap0
ca /etc/openvpn/ca.crt
cert /etc/openvpn/server.crt
key /etc/openvpn/server.key
crl-verify /etc/openvpn/crl.pem
dh /etc/openvpn/dh.pem
server-bridge
max-clients $num_vpn
push "route $dmz_net $dmz_mask"
keepalive 10 120
persist-key
persist-tun
END
# The cloud's own services are at $cc_dmz, port $cc_port.
service openvpn restart
"""


class Cloudpipes:
    """The implementation of CloudpipeCalls. ``create`` and ``servers``: the functions ``create_servers`` and
    ``list_servers``."""

    def __init__(self, deps: Deps, create: Callable[[NewServer], CreatedServers],
                 servers: Callable[[ServerListQuery], ServerPage]) -> None:
        self.deps, self._create, self._servers = deps, create, servers

    @property
    def _settings(self) -> VpnSettings:
        found: VpnSettings = self.deps.settings.vpn
        return found

    def list_cloudpipes(self) -> tuple[Cloudpipe, ...]:
        """Return the servers of the VPN image in all projects; () if nova.conf has no VPN image."""
        if self._settings.vpn_image_id == NO_VPN:
            return ()
        with self.deps.cell.reading() as tx:
            by_project = {one.project_id: one for one in networks.select(tx, Scope()) if one.vpn_private_address}
        return tuple(_shown(server, by_project.get(server.project_id)) for server in self._of(None))

    def create_cloudpipe(self, project_id: str) -> str:
        """Create a project's VPN server, or return its existing one. Concurrent calls return the same server.

        Raises network.CloudpipeUnavailable, and the errors of ``create_servers``.
        """
        settings = self._settings
        if settings.vpn_image_id == NO_VPN:
            raise errors.network.CloudpipeUnavailable(reason="vpn_image_id is not set in the conductor's nova.conf")
        check_project(self.deps, project_id)
        there = self._of(project_id)
        live = [server for server in there if server.vm_state != VmState.ERROR]
        if live:
            return live[-1].uuid
        network, credentials = self._network(project_id), self.deps.certs.vpn_credentials(project_id)
        who = context.current()
        with context.entered(msgspec.structs.replace(who, project_id=project_id)):
            name = f"{project_id}{settings.vpn_key_suffix}"
            self._group(name, project_id)
            order = NewServer(
                name=name, flavor_id=self._flavor(), image_id=settings.vpn_image_id, security_groups=(name,),
                key_name=self._keypair(name, who.user_id or "", credentials),
                networks=(RequestedNetwork(network_id=network.uuid, vpn=True),),
                user_data=user_data(credentials, settings), key=self._key(project_id, network))
            return self._create(order).uuids[0]

    def configure_vpn(self, project_id: str, address: str, port: int) -> None:
        """Set the VPN's public address and port in all the project's networks, and notify their hosts.

        Raises Invalid for the address or port; network.CloudpipeNoNetwork; Unavailable if a host could not be notified,
        although the rows are written.
        """
        with failures.replaced(ValueError, lambda _: errors.Invalid(
                f"Invalid input for field vpn_ip: {address!r} is not an IPv4 address.")):
            ipaddress.IPv4Address(address)
        if not 0 < port < 65536:
            raise errors.Invalid(f"Invalid input for field vpn_port: {port} is not a port.")

        def write(tx: Connection) -> set[str]:
            mine = [one for one in networks.select(tx, Scope()) if one.project_id == project_id]
            if not mine:
                raise errors.network.CloudpipeNoNetwork(project_id=project_id)
            networks.set_vpn(tx, [one.id for one in mine], address, port)
            return {one.uuid for one in mine}
        self.deps.network_updates.send(self.deps.cell.transact(write))

    # -- private

    def _of(self, project_id: str | None) -> tuple[ServerDetail, ...]:
        query = ServerListQuery(scope=Scope(project_id=project_id), page=Page(),
                                conditions=(Condition(column="image_id", value=self._settings.vpn_image_id),))
        return self._servers(query).servers

    def _network(self, project_id: str) -> Network:
        """Return the project's network, which must reserve a VPN address; assigns a network if the project has none."""
        with self.deps.cell.reading() as tx:
            mine = [one for one in networks.select(tx, Scope()) if one.project_id == project_id]
        found: Network = mine[0] if mine else self.deps.networking.networks.add_network_to_project(None, project_id)
        if not found.vpn_private_address:
            raise errors.network.CloudpipeUnavailable(reason=f"network {found.label} reserves no VPN address: only "
                                                      "networks of VlanManager do")
        return found

    def _flavor(self) -> str:
        with self.deps.api.reading() as tx:
            named = [one for one in flavors.select(tx, FlavorQuery(is_public=None), self.deps.settings.max_limit)
                     if one.name == self._settings.vpn_flavor]
        if not named:
            raise errors.network.CloudpipeUnavailable(reason=f"flavor {self._settings.vpn_flavor} does not exist "
                                                      "(vpn_flavor in nova.conf)")
        return named[0].flavorid

    def _keypair(self, name: str, user_id: str, credentials: VpnCredentials) -> str:
        key = base64.b64decode(credentials.public_key.split()[1])
        digest = hashlib.md5(key, usedforsecurity=False).hexdigest()
        wanted = NewKeypair(name=name, user_id=user_id, public_key=credentials.public_key,
                            fingerprint=":".join(digest[at:at + 2] for at in range(0, 32, 2)))

        def make(tx: Connection) -> None:
            if not keypairs.count(tx, user_id, name)[1]:
                keypairs.insert(tx, wanted)
        with contextlib.suppress(errors.server.KeypairTaken):  # by a concurrent call
            self.deps.api.transact(make)
        return name

    def _group(self, name: str, project_id: str) -> None:
        groups = self.deps.networking.groups
        found = groups.list_security_groups(SecurityGroupQuery(scope=Scope(project_id=project_id), names=(name,)))
        group = found[0] if found else groups.create_security_group(NewSecurityGroup(
            name=name, description="VPN server and its clients", project_id=project_id))
        open_now = {(rule.protocol, rule.from_port, rule.to_port) for rule in group.rules}
        for protocol, first, last in OPEN:
            if (protocol, first, last) not in open_now:
                groups.create_security_rule(NewSecurityRule(group_id=group.id, protocol=protocol, from_port=first,
                                                            to_port=last, cidr="0.0.0.0/0"),
                                            Scope(project_id=project_id))

    def _key(self, project_id: str, network: Network) -> str:
        """Return the idempotency key: equal for concurrent calls, so that they create one server; new once it is gone.
        """
        query = ServerListQuery(scope=Scope(project_id=project_id), deleted="any", sort=(("created_at", "desc"),),
                                conditions=(Condition(column="image_id", value=self._settings.vpn_image_id),))
        before = self._servers(query).servers
        return str(uuids.uuid5(NAMESPACE, f"{network.uuid}:{before[0].uuid if before else ''}"))


def user_data(credentials: VpnCredentials, settings: VpnSettings) -> str:
    """Return a zip of the boot script and the certificates, base64-encoded twice: the guest decodes the inner encoding.
    """
    template = Path(settings.boot_script_template).read_text() if settings.boot_script_template else BOOT_SCRIPT
    script = string.Template(template).safe_substitute(
        cc_dmz=settings.cc_dmz, cc_port=settings.cc_port, dmz_net=settings.dmz_net, dmz_mask=settings.dmz_mask,
        num_vpn=settings.cnt_vpn_clients)
    files = {"autorun.sh": script, "crl.pem": credentials.revoked, "server.key": credentials.server_key,
             "ca.crt": credentials.authority, "server.crt": credentials.server_certificate}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return base64.b64encode(base64.b64encode(packed.getvalue())).decode()


def _shown(server: ServerDetail, network: Network | None) -> Cloudpipe:
    addresses = [one.address for card in server.interfaces for one in card.addresses if one.version == 4]
    state = "invalid" if network is None else STATES.get(server.vm_state.value, "down")
    return Cloudpipe(
        project_id=server.project_id, server_uuid=server.uuid, state=state, created_at=server.created_at,
        internal_address=addresses[0] if addresses else None,
        public_address=network.vpn_public_address if network else None,
        public_port=network.vpn_public_port if network else None)


__all__ = ["Cloudpipes", "VpnSettings", "user_data"]
