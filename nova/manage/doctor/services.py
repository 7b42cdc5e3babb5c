"""What this host asks over the network: broker, databases, Glance, image proxies, Placement."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
from pathlib import Path

from nova import errors
from nova.cmd.tool_ending import described
from nova.conf._security_mode import asked_mode
from nova.conf.base import Options
from nova.manage.doctor.finding import BAD, OK, WARN, Finding, is_host, of_database
from nova.model.base import Library
from nova.model.security.security_modes import SecurityMode

LONGEST_PAGE = 1 << 16  # bytes


def broker(options: Options) -> Finding:
    """The broker takes connections, and a conductor answers over it."""
    try:
        bus, option = the_bus(options)
    except errors.NovaError as error:
        return Finding(BAD, error.message, error.cure or "see 'The broker' in the installation guide")
    host, port = broker_address(getattr(options, option) or "rabbit://")
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
            return Finding(OK, "a conductor answered over the broker, that its database does not answer: see the line "
                               "'database', on the conductor's host")
        return Finding(BAD, f"the broker is there, but no conductor answers: {error.message}",
                       "start nova-conductor and look at its log; check the user and vhost in " + option)
    took = f"a conductor answered over the broker in {1000 * (time.monotonic() - started):.0f} ms{answer}"
    return unproven(options, host, took) or Finding(OK, took)


def unproven(options: Options, host: str, took: str) -> Finding | None:
    """A warning where the broker is spoken to by TLS, and anybody may be it: oslo.messaging checks its certificate
    where an authority is named alone."""
    group = options.oslo_messaging_rabbit
    if not group.ssl or group.ssl_ca_file:
        return None
    return Finding(WARN, f"{took}; whether it is {host} nobody checks",
                   "name the authority of its certificate in [oslo_messaging_rabbit]ssl_ca_file")


def the_bus(options: Options) -> tuple[Library, str]:
    """The one that this host's daemons use, and the option with its URL. config.Missing, host.DamagedSecret,
    host.SecretNotMade: daemons make it, whose user we may not be."""
    from nova.rpc.host_secret import FILE, HostSecret
    from nova.rpc.transport import Bus, HostsBus

    if is_host(options):
        secret = Path(options.state_path, FILE)
        if not secret.exists():
            raise errors.host.SecretNotMade(path=secret)
        return HostsBus(options, options.host, HostSecret(Path(options.state_path))), HostsBus.option
    return Bus(options, options.host), Bus.option


def round_trip(options: Options, bus: Library) -> str:
    """Over the bus and through the database, by the contract that this host may use; more to say of it, or nothing."""
    from nova.rpc.contracts.conductor import ConductorRPC
    from nova.rpc.contracts.conductor_host import ConductorHostRPC

    if is_host(options):
        bus.client(ConductorHostRPC).may_proceed(options.host, ())
        return ""
    return f" (database: {bus.client(ConductorRPC).ping(options.host)})"


def broker_address(url: str) -> tuple[str, int]:
    """Host and port of the first broker that the URL names."""
    place = url.split("://", 1)[-1].split("/", 1)[0].split(",")[0].rsplit("@", 1)[-1]
    host, _, port = place.partition(":")
    return host or "127.0.0.1", int(port or 5672)


def databases(options: Options) -> Finding:
    """Whether both databases answer and have the newest schema: on a conductor's host, no other has their URLs."""
    from nova.cmd.conductor import databases as both
    from nova.db.schema import migrate

    if not (options.database.connection and options.api_database.connection):
        return Finding(OK, "there is no database URL here: only nova-conductor's host has any")
    api, cell = both(options)
    try:
        for schema, database in (("api", api), ("cell", cell)):
            migrate.check(schema, database)
        return Finding(OK, f"both schemas are current on {migrate.product(cell)}")
    except errors.daemon.DbSchemaBehind as error:
        return Finding(BAD, error.message, "nova-manage api_db sync; nova-manage db sync")
    except errors.NovaError as error:
        return Finding(BAD, described(error), "check [database]connection and [api_database]connection, and the server")


def glance(options: Options) -> Finding:
    """Whether Glance answers with our own credentials, and has an image to make servers of."""
    if is_host(options):
        return Finding(OK, "a compute host does not ask Glance: orders say where its image proxy is")
    from nova.clients import glance as client
    from nova.clients import session
    from nova.manage.doctor.standing import refused
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
    """Whether Cinder answers with our own credentials, which give back what servers that are gone have of it."""
    if is_host(options):
        return Finding(OK, "a compute host does not ask Cinder: orders say how volumes are reached")
    from nova.clients import cinder as client
    from nova.clients import session
    from nova.manage.doctor.standing import refused
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
    """Whether each image proxy answers where hosts are sent to, and the key of tickets can be used."""
    import requests

    from nova.cmd import imageproxy
    from nova.cmd.conductor_hosts import proxy_servers

    if is_host(options):
        return Finding(OK, "orders say where the image proxy is")
    if asked_mode(options) is SecurityMode.UPSTREAM:
        return Finding(OK, "hosts ask the image service by themselves, with their own [glance] credentials")
    try:
        imageproxy.seal(options)
    except errors.NovaError as error:
        return Finding(BAD, error.message, "set it, and start nova-conductor and nova-imageproxy again")
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
    """Whether Placement's API, where it runs here, answers; nothing of ours needs it."""
    group, certificate = options.placement_api, options.wsgi.ssl_cert_file
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(group.listen, group.listen)
    url = f"{'https' if certificate else 'http'}://{f'[{address}]' if ':' in address else address}:{group.listen_port}/"
    try:
        versions = json.loads(_page(address, group.listen_port, certificate))["versions"]
        return Finding(OK, f"nova-placement-api answers at {url}, up to version {versions[0]['max_version']}")
    except ssl.SSLCertVerificationError as error:
        return Finding(BAD, f"what listens at {url} does not show the certificate of [wsgi]ssl_cert_file "
                            f"({error.verify_message})", "restart nova-placement-api, or correct the file")
    except ssl.SSLError as error:
        if options.wsgi.ssl_ca_file:
            return Finding(OK, f"nova-placement-api at {url} answers to clients with certificates alone")
        return Finding(BAD, f"what listens at {url} speaks no TLS that we do: {error.reason}",
                       "look at nova-placement-api's log, and at [wsgi]ssl_cert_file")
    except (ConnectionError, TimeoutError, socket.gaierror):
        return Finding(OK, "nova-placement-api does not run here: only clients of Placement's API need it")
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return Finding(BAD, f"what listens at {url} is no Placement API",
                       "end what has the port, or choose another by [placement_api]listen_port")


def _page(address: str, port: int, certificate: str | None) -> bytes:
    """The first page. Its server has no name, only an address of this host, but must show the very certificate that it
    was given."""
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
