"""Doctor checks of network services: broker, databases, Glance, Cinder, image proxies, Placement."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nova import errors
from nova.cmd.tool_ending import described
from nova.conf._options import Options, oslo_conf
from nova.conf._security_mode import asked_mode
from nova.manage.doctor.finding import BAD, OK, WARN, Finding, is_host, of_database
from nova.model.security.security_modes import SecurityMode

if TYPE_CHECKING:
    from nova.rpc.transport import Bus

LONGEST_PAGE = 1 << 16  # bytes


def broker(options: Options) -> Finding:
    """Check that the broker accepts connections, and that a conductor answers over it."""
    try:
        bus, option = the_bus(options)
    except errors.NovaError as error:
        return Finding(BAD, error.message, error.cure or "see 'The broker' in the installation guide")
    host, port = broker_address(getattr(oslo_conf(options), option) or "rabbit://")
    try:
        socket.create_connection((host, port), 5).close()
    except OSError as error:
        return Finding(BAD, f"no broker at {host}:{port} ({error.strerror or error})",
                       f"start RabbitMQ, or correct [DEFAULT]{option}")
    started = time.monotonic()
    try:
        answer = round_trip(options, bus)
    except errors.NovaError as error:
        if of_database(error):
            return Finding(OK, "a conductor answered over the broker that its database does not answer: see the line "
                               "'database', on the conductor's host")
        return Finding(BAD, f"the broker answers, but no conductor does: {error.message}",
                       "start nova-conductor and check its log; check the user and vhost in " + option)
    took = f"a conductor answered over the broker in {1000 * (time.monotonic() - started):.0f} ms{answer}"
    return unproven(options, host, took) or Finding(OK, took)


def unproven(options: Options, host: str, took: str) -> Finding | None:
    """Return a warning if TLS to the broker does not verify the broker: oslo.messaging checks its certificate only if a
    certificate authority is configured."""
    group = oslo_conf(options).oslo_messaging_rabbit
    if not group.ssl or group.ssl_ca_file:
        return None
    return Finding(WARN, f"{took}; the certificate of {host} is not verified",
                   "set [oslo_messaging_rabbit]ssl_ca_file to the authority of its certificate")


def the_bus(options: Options) -> tuple[Bus, str]:
    """Return the bus that this host's services use, and the option with its URL. Raises config.Missing,
    host.DamagedSecret; host.SecretNotMade if the secret does not exist yet: only services create it, as their user."""
    from nova.rpc.host_secret import FILE, HostSecret
    from nova.rpc.transport import Bus, HostsBus

    if is_host(options):
        secret = Path(options.state_path, FILE)
        if not secret.exists():
            raise errors.host.SecretNotMade(path=secret)
        return HostsBus(options, options.host, HostSecret(Path(options.state_path))), HostsBus.option
    return Bus(options, options.host), Bus.option


def round_trip(options: Options, bus: Bus) -> str:
    """Call a conductor, and through it the database, by the contract that this host may use. Return a suffix for the
    finding's text."""
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.contracts.conductor_host import ConductorHostRPC

    if is_host(options):
        bus.client(ConductorHostRPC).may_proceed(options.host, ())
        return ""
    return f" (database: {bus.client(ConductorRPC).ping(options.host)})"


def broker_address(url: str) -> tuple[str, int]:
    """Return the host and port of the first broker in the URL."""
    place = url.split("://", 1)[-1].split("/", 1)[0].split(",")[0].rsplit("@", 1)[-1]
    host, _, port = place.partition(":")
    return host or "127.0.0.1", int(port or 5672)


def databases(options: Options) -> Finding:
    """Check that the configured databases answer and have the newest schema; only on a conductor's host, which has the
    URLs: a cell conductor's has that of the cell's database alone."""
    from nova.cmd.conductor_databases import database
    from nova.db.schema import revisions

    urls = {"api": options.api_database.connection, "cell": options.database.connection}
    found = [database(options, schema) for schema, url in urls.items() if url]
    if not found:
        return Finding(OK, "no database URL is set here: only nova-conductor's host has the URLs")
    try:
        for one in found:
            revisions.check(one.schema, one)
        which = "both schemas are" if len(found) == len(urls) else f"the {found[0].schema} schema is"
        return Finding(OK, f"{which} current on {revisions.product(found[-1])}")
    except errors.daemon.DbSchemaBehind as error:
        return Finding(BAD, error.message, "nova-manage api_db sync; nova-manage db sync")
    except errors.NovaError as error:
        return Finding(BAD, described(error), "check [database]connection and [api_database]connection, and the server")


def glance(options: Options) -> Finding:
    """Check that Glance answers with nova's credentials, and has an image to create servers from."""
    if is_host(options):
        return Finding(OK, "a compute host does not use Glance: orders have the address of the image proxy")
    from nova.clients import glance as client
    from nova.clients import session
    from nova.manage.doctor.keystone_credentials import refused
    from nova.model.image.images import ImageQuery

    bad = refused(options, "glance")
    if bad:
        return bad
    try:
        images = client.of_groups(options.glance, session.load(options, "glance")).list(ImageQuery(limit=1))
    except errors.NovaError as error:
        return Finding(BAD, error.message,
                       "check that Glance runs, and its endpoint in the catalog or [glance]api_servers")
    return Finding(OK if images else WARN, "Glance answers" + ("" if images else ", but has no image"),
                   "" if images else "openstack image create --file FILE --disk-format qcow2 NAME")


def cinder(options: Options) -> Finding:
    """Check that Cinder answers with nova's credentials, with which attachments of deleted servers are removed."""
    if is_host(options):
        return Finding(OK, "a compute host does not use Cinder: orders have the connection data of volumes")
    from nova.clients import cinder as client
    from nova.clients import session
    from nova.manage.doctor.keystone_credentials import refused
    from nova.model.volumes import VolumeQuery

    bad = refused(options, "cinder")
    if bad:
        return bad
    try:
        client.of_groups(options.cinder, session.load(options, "cinder")).list(VolumeQuery(limit=1))
    except errors.volume.NoService:
        return Finding(OK, "there is no Cinder: servers have no volumes")
    except errors.NovaError as error:
        return Finding(BAD, error.message, error.cure or "check that Cinder runs, and [cinder]catalog_info")
    return Finding(OK, "Cinder answers")


def image_proxy(options: Options) -> Finding:
    """Check that each image proxy answers at the address that hosts get, and that the ticket key is valid."""
    import requests

    from nova.cmd import imageproxy
    from nova.cmd.conductor_hosts import proxy_servers

    if is_host(options):
        return Finding(OK, "orders have the address of the image proxy")
    if asked_mode(options) is SecurityMode.UPSTREAM:
        return Finding(OK, "hosts use the image service directly, with their own [glance] credentials")
    try:
        imageproxy.seal(options)
    except errors.NovaError as error:
        return Finding(BAD, error.message, "set it, and restart nova-conductor and nova-imageproxy")
    silent, verify = [], options.image_proxy.cafile or not options.image_proxy.insecure
    for server in proxy_servers(options):
        try:
            requests.get(f"{server}/healthcheck", timeout=5, verify=verify).raise_for_status()
        except requests.RequestException:
            silent.append(server)
    if silent:
        return Finding(BAD, f"no image proxy answers at {', '.join(silent)}: hosts get no images from there",
                       "start nova-imageproxy, or correct [image_proxy]servers")
    return Finding(OK, f"nova-imageproxy answers at {', '.join(proxy_servers(options))}")


def placement(options: Options) -> Finding:
    """Check that Placement's API answers, if it runs here; nova itself does not need it."""
    group, certificate = options.placement_api, options.wsgi.ssl_cert_file
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(group.listen, group.listen)
    url = f"{'https' if certificate else 'http'}://{f'[{address}]' if ':' in address else address}:{group.listen_port}/"
    try:
        versions = json.loads(_page(address, group.listen_port, certificate))["versions"]
        return Finding(OK, f"nova-placement-api answers at {url}, up to version {versions[0]['max_version']}")
    except ssl.SSLCertVerificationError as error:
        return Finding(BAD, f"the server at {url} does not present the certificate of [wsgi]ssl_cert_file "
                            f"({error.verify_message})", "restart nova-placement-api, or correct the file")
    except ssl.SSLError as error:
        if options.wsgi.ssl_ca_file:
            return Finding(OK, f"nova-placement-api at {url} answers only clients with certificates")
        return Finding(BAD, f"TLS with the server at {url} failed: {error.reason}",
                       "check nova-placement-api's log, and [wsgi]ssl_cert_file")
    except (ConnectionError, TimeoutError, socket.gaierror):
        return Finding(OK, "nova-placement-api does not run here: only clients of Placement's API need it")
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return Finding(BAD, f"the server at {url} is not a Placement API",
                       "stop the program that uses the port, or set another [placement_api]listen_port")


def _page(address: str, port: int, certificate: str | None) -> bytes:
    """Return the root page. The server is addressed by IP, so its name is not checked, but it must present exactly the
    configured certificate."""
    if certificate:
        context = ssl.create_default_context(cafile=certificate)
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        link: http.client.HTTPConnection = http.client.HTTPSConnection(address, port, timeout=5, context=context)
    else:
        link = http.client.HTTPConnection(address, port, timeout=5)
    with contextlib.closing(link):
        link.request("GET", "/")
        return link.getresponse().read(LONGEST_PAGE)
