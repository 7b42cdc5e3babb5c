"""A conductor's parts for hosts: the encryption of their secrets and of their cells' URLs, the buses to them, their
image tickets; and in upstream mode, the replacement of nova-consoleauth."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from oslo_utils import netutils

from nova.conf._options import Options, oslo_conf
from nova.conf._security_mode import asked_mode
from nova.model.host.cell_urls import CellUrls
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


def cloud_wrap(options: Options, cell: Database, mode: SecurityMode | None, urls: CellUrls | None = None) -> SecretWrap:
    """Return the encryption of host secrets in a cell of this mode. ``urls``: of another cell than the configured one.

    In upstream mode the generated key encrypts them, also while hosts move to bounded mode, so that it can decrypt them
    if the move is never completed. In bounded mode the configured keys encrypt them, and the generated key decrypts
    older secrets, until 'wrap-secrets' has encrypted all again. Raises config.HostSecretKey; config.GeneratedKey in
    upstream mode."""
    from nova.conductor.hosts.generated_keys import generated_key, kept_key
    from nova.db.host.generated_keys import HOSTS
    from nova.model.security.secret_wrap import SecretWrap

    configured, passwords = options.conductor.host_secret_key, key_passwords(options, urls)
    if mode is SecurityMode.UPSTREAM:
        return SecretWrap((generated_key(cell, HOSTS, passwords), *configured))
    return SecretWrap((*configured, *kept_key(cell, HOSTS, passwords)))


def key_passwords(options: Options, urls: CellUrls | None = None) -> dict[str, str]:
    """Return the passwords that encrypt the copies of a cell's generated key: all its conductors have them, but the
    database does not."""
    from nova.db.host.generated_keys import password_of
    from nova.rpc.hosts_url import passwords_of, shared_passwords

    if urls is not None:
        return {"broker": passwords_of(options, urls.transport_url), "database": password_of(urls.database_connection)}
    return {"broker": shared_passwords(options), "database": password_of(options.database.connection or "")}


def cells_wrap(options: Options, api: Database) -> SecretWrap:
    """Return the encryption of cells' URLs in the api database: with the configured keys of host secrets, or else with
    a key that is generated there. Raises config.HostSecretKey if a key is malformed; config.GeneratedCellKey."""
    from nova.conductor.hosts.generated_keys import generated_key, kept_key
    from nova.db.host.generated_keys import CELLS
    from nova.model.security.secret_wrap import SecretWrap

    configured, passwords = options.conductor.host_secret_key, cell_key_passwords(options)
    if configured:
        return SecretWrap((*configured, *kept_key(api, CELLS, passwords)))
    return SecretWrap((generated_key(api, CELLS, passwords),))


def cell_key_passwords(options: Options) -> dict[str, str]:
    """Return the password that encrypts the copy of the generated key: conductors of all cells have it."""
    from nova.db.host.generated_keys import password_of

    return {"api_database": password_of(options.api_database.connection or "")}


def configured_urls(options: Options) -> CellUrls:
    """Return the URLs of this configuration's cell. Its broker is its hosts' broker."""
    from nova.rpc import transport

    broker = transport.has_broker(options)  # also declares transport_url, for which the library has a default
    shared = oslo_conf(options).transport_url if broker else ""
    return CellUrls(options.hosts_transport_url or shared, options.database.connection or "")


def host_ends(options: Options, cell: Database, wrap: SecretWrap, mode: SecurityMode, peers: Peers,
              url: str = "") -> HostBuses:
    """Return this conductor's connections to hosts: through the hosts' own vhost, if configured, and in upstream mode
    through the common vhost. ``url``: of the broker of another cell, to whose hosts it is the only connection."""
    from nova.conductor.hosts.enrolment import EnrolledKeys
    from nova.conductor.hosts.host_buses import HostBus, HostBuses
    from nova.db.host import enrolments
    from nova.db.operation import taken_messages
    from nova.rpc.buses import hosts_bus
    from nova.rpc.hosts_url import OWN, SHARED, HostsBroker

    def take(host: str, message: str) -> bool:
        return cell.transact(lambda tx: taken_messages.take(tx, host, message))

    def end(option: str) -> HostBus:
        keys = EnrolledKeys(cell, wrap, shared=option == SHARED)
        return HostBus(hosts_bus(options, options.host, keys, conductor=True, peers=peers, take=take,
                                 broker=HostsBroker(option, url)), keys, option == SHARED)
    bounded = mode is SecurityMode.BOUNDED if url else asked_mode(options) is SecurityMode.BOUNDED
    wanted = {OWN: bounded, SHARED: mode is SecurityMode.UPSTREAM}

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
