"""A conductor's parts for hosts: the encryption of their secrets, the buses to them, their image tickets; and in
upstream mode, the replacement of nova-consoleauth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from oslo_utils import netutils

from nova.conf._options import Options
from nova.conf._security_mode import asked_mode
from nova.model.security.security_modes import SecurityMode

if TYPE_CHECKING:
    from nova.conductor.hosts.host_buses import HostBuses
    from nova.conductor.hosts.image_tickets import TicketMaker
    from nova.console.service import ConsoleAuthService
    from nova.db.sql.engine import Database
    from nova.model.security.secret_wrap import SecretWrap
    from nova.rpc.client import Peers
    from nova.rpc.contracts.conductor import ConductorRPC


def secret_wrap(options: Options) -> SecretWrap:
    """Return the encryption of host secrets in bounded mode. Raises config.HostSecretKey if
    ``[conductor]host_secret_key`` is missing or malformed."""
    from nova.model.security.secret_wrap import SecretWrap

    return SecretWrap(options.conductor.host_secret_key)


def cloud_wrap(options: Options, cell: Database, mode: SecurityMode | None) -> SecretWrap:
    """Return the encryption of host secrets in a cloud of this mode.

    In upstream mode the generated key encrypts them, also while hosts move to bounded mode, so that it can decrypt them
    if the move is never completed. In bounded mode the configured keys encrypt them, and the generated key decrypts
    older secrets, until 'wrap-secrets' has encrypted all again. Raises config.HostSecretKey; config.GeneratedKey in
    upstream mode."""
    from nova.conductor.hosts import security
    from nova.model.security.secret_wrap import SecretWrap

    configured, passwords = options.conductor.host_secret_key, key_passwords(options)
    if mode is SecurityMode.UPSTREAM:
        return SecretWrap((security.generated_key(cell, passwords), *configured))
    return SecretWrap((*configured, *security.kept_key(cell, passwords)))


def key_passwords(options: Options) -> dict[str, str]:
    """Return the passwords that encrypt the copies of a generated key: all conductors have them, but the database does
    not."""
    from nova.db.host.security import password_of
    from nova.rpc.hosts_url import shared_passwords

    return {"broker": shared_passwords(options), "database": password_of(options.database.connection or "")}


def host_ends(options: Options, cell: Database, wrap: SecretWrap, mode: SecurityMode, peers: Peers) -> HostBuses:
    """Return this conductor's connections to hosts: through the hosts' own vhost, if configured, and in upstream mode
    through the common vhost."""
    from nova.conductor.hosts.enrolment import EnrolledKeys
    from nova.conductor.hosts.host_buses import HostBus, HostBuses
    from nova.db.host import enrolments
    from nova.db.operation import taken_messages
    from nova.rpc.buses import hosts_bus
    from nova.rpc.hosts_url import OWN, SHARED

    def take(host: str, message: str) -> bool:
        return cell.transact(lambda tx: taken_messages.take(tx, host, message))

    def end(option: str) -> HostBus:
        keys = EnrolledKeys(cell, wrap, shared=option == SHARED)
        return HostBus(hosts_bus(options, options.host, keys, conductor=True, peers=peers, take=take, option=option),
                       keys, option == SHARED)
    wanted = {OWN: asked_mode(options) is SecurityMode.BOUNDED, SHARED: mode is SecurityMode.UPSTREAM}

    def is_isolated(host: str) -> bool:
        with cell.reading() as tx:
            return enrolments.keys(tx, host).isolated
    return HostBuses([end(option) for option, there in wanted.items() if there], is_isolated)


def ticket_maker(options: Options, host_secret: Callable[[str], str]) -> TicketMaker:
    """Return the issuer of image tickets, as configured in ``[image_proxy]``. Raises config.ImageProxyKey if its key is
    missing or malformed."""
    from nova.cmd import imageproxy
    from nova.conductor.hosts.image_tickets import TicketMaker, TicketSettings

    settings = TicketSettings(proxy_servers(options), options.image_proxy.ticket_lifetime)
    return TicketMaker(imageproxy.seal(options), settings, host_secret)


def proxy_servers(options: Options) -> tuple[str, ...]:
    """Return the image proxies' URLs for hosts: ``[image_proxy]servers``, else the one on this conductor's host."""
    group, scheme = options.image_proxy, "https" if options.wsgi.ssl_cert_file else "http"
    at_home = f"{scheme}://{netutils.escape_ipv6(options.my_ip)}:{group.listen_port}"
    return tuple(server.rstrip("/") for server in group.servers) or (at_home,)


def console_auth(options: Options, conductor: ConductorRPC) -> ConsoleAuthService:
    """Return the replacement of nova-consoleauth in upstream mode, in which that service is not started."""
    from nova.cmd.consoleauth import base_urls
    from nova.console.service import ConsoleAuthService

    return ConsoleAuthService(conductor, options.consoleauth, base_urls(options), hosts_say=True)
