"""The EC2 API as a WSGI application: authenticates the signer, dispatches the action, responds in XML.

GET and POST are equivalent. The paths ``/services/Cloud``, ``/services/Cloud/`` and ``/`` are equivalent, too. Every
error is returned as XML, since clients show nothing of an error that they cannot parse.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import msgspec
from oslo_middleware import healthcheck
from oslo_utils import netutils

from nova import errors
from nova.conf._options import Options, oslo_conf
from nova.conf.network import neutron_in_use
from nova.context import RequestContext, current, entered
from nova.http_connection_limit import HOLDER
from nova.legacy.ec2 import faults, xml
from nova.legacy.ec2.actions import ACTIONS, ALWAYS_NEW, is_reading
from nova.legacy.ec2.faults import Ec2Error, missing
from nova.legacy.ec2.ids import IdCache
from nova.legacy.ec2.parameters import MOST, arguments
from nova.legacy.ec2.request import DryRun, Ec2Options, Ec2Request, Ec2Site
from nova.legacy.signatures import signers
from nova.legacy.signatures.request import (
    EC2_ERRORS,
    SignatureFault,
    SignatureRefused,
    SignedRequest,
    signed_request,
    sole_values,
)
from nova.legacy.signatures.signers import Signers
from nova.legacy.signatures.taken import TakenSignatures
from nova.legacy.signatures.versions import ec2_signature
from nova.policies import Policy
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.objectstore import ObjectStoreRPC
from nova.web.access_log import AccessLog
from nova.web.dispatch import MountedApi, send
from nova.web.fair_share import ProjectLimiter
from nova.web.paths import ROUTE_KEY, VERSION_KEY
from nova.web.request_id import HEADER, RequestId
from nova.web.stacking import stacked

LOG = logging.getLogger(__name__)

ACCESS_LOG = "nova.ec2.access"
PATHS = frozenset({"/services/Cloud", "/services/Cloud/", "/", ""})
LONGEST_BODY = 1048576  # bytes: user data and keys are the largest parameters
CONTENT_TYPE = "text/xml"
LONGEST_VERSION = 32
LONGEST_ACTION = 100
UNREACHED = "Failure communicating with keystone: the signature cannot be verified now."


class Ec2Application:
    """The EC2 API without its middleware.

    ``clock``: seconds since 1970, to check the age of signatures. ``taken``: the record of signatures already used, to
    refuse replays; None: replays are not detected.
    """

    def __init__(self, site: Ec2Site, who: Signers, clock: Callable[[], float] = time.time,
                 taken: TakenSignatures | None = None) -> None:
        self._site, self._signers, self._clock, self._taken = site, who, clock, taken
        self._turns = ProjectLimiter()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request_id = environ["nova.request_id"]
        environ["nova.path"] = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        environ["ec2.query"], environ["QUERY_STRING"] = environ.get("QUERY_STRING", ""), ""  # no signatures in logs
        try:
            status, content = 200, self._answer(environ, request_id)
        except ConnectionError:
            raise
        except Exception as error:  # a bug is a response, too
            status, content = self._refused(error, environ, request_id)
        return send(start_response, status, [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(content)))],
                    content)

    def _answer(self, environ: WSGIEnvironment, request_id: str) -> bytes:
        signed = _signed(environ)
        pairs = [*signed.query_pairs, *signed.form]
        named = sole_values([(name.lower(), value) for name, value in pairs])  # a signature covers Action, not action
        version = named.get("version", "")[:LONGEST_VERSION]
        environ[VERSION_KEY] = ascii(version)[1:-1]  # for the log: the client may send any text, also newlines
        context = self._context(signed, request_id)
        environ[HOLDER] = context.project_id
        with self._turns.turn(context.project_id or ""), entered(context):
            for name in ("Action", "Version"):
                if not named.get(name.lower()):
                    raise missing(name)
            action = named["action"]
            shown = action[:LONGEST_ACTION]
            environ["QUERY_STRING"] = f"Action={shown}"  # all actions have the same path in the access log
            if action not in ACTIONS:
                raise Ec2Error("InvalidAction", f"The action {shown} is not valid for this web service.")
            environ[ROUTE_KEY] = f"EC2 {action}"
            self._take(signed, action, named)
            return self._done(Ec2Request(context, self._site, version), action, pairs, request_id)

    def _take(self, signed: SignedRequest, action: str, named: Mapping[str, str]) -> None:
        """Record the signature of a request that changes something. Raises SignatureRefused if it is a replay.

        An action in ALWAYS_NEW without a client token is never repeatable: an extra server may be expensive, and
        clients that want several servers use MaxCount or client tokens.
        """
        if self._taken is None or is_reading(action) or named.get("dryrun", "").lower() == "true":
            return
        self._taken.take(ec2_signature(signed, self._clock()), signed.peer,
                         action not in ALWAYS_NEW or bool(named.get("clienttoken")))

    def _done(self, req: Ec2Request, action: str, pairs: list[tuple[str, str]], request_id: str) -> bytes:
        row = ACTIONS[action]
        args = arguments(row.arguments, pairs)
        req.dry_run = args.dry_run
        try:
            if row.rule is not None:
                req.authorize(row.rule)
            body = row.handler(req, args)
        except errors.NovaError as error:
            error.message = req.in_words_of_ec2(error.message)
            raise
        if args.dry_run:
            raise DryRun
        return xml.answer(action, req.version, request_id, body, empty_unset=req.is_old)

    def _context(self, signed: SignedRequest, request_id: str) -> RequestContext:
        facts = self._signers.ec2(signed, self._clock())
        context = RequestContext(request_id=request_id, traceparent=current().traceparent, **facts)
        return msgspec.structs.replace(context, is_admin=self._site.policy.is_admin(context))

    def _refused(self, error: Exception, environ: WSGIEnvironment, request_id: str) -> tuple[int, bytes]:
        status, code, message = _described(error, str(environ.get(VERSION_KEY, "")))
        if status == 500:
            LOG.exception("Unexpected error in %s", environ.get(ROUTE_KEY, "a request to the EC2 API"))
        else:
            LOG.debug("%s: %s %s %s", environ.get(ROUTE_KEY, "EC2"), status, code, message)
        return status, xml.error(code, message, request_id)


def _described(error: Exception, version: str) -> tuple[int, str, str]:
    if isinstance(error, SignatureRefused):
        status, code = EC2_ERRORS[error.fault]
        return status, code, error.fault.value if error.fault is SignatureFault.MISMATCH else str(error)
    if isinstance(error, (errors.api.SignaturesAway, errors.api.IdentityRefuses)):
        return error.status, "AuthFailure", UNREACHED
    return faults.described(error, Ec2Request.is_of_first_years(version))


def _signed(environ: WSGIEnvironment) -> SignedRequest:
    """Read and parse a request; refuse unknown paths and methods.

    The body is read completely, since a signature may cover its bytes.
    """
    if environ["nova.path"] not in PATHS:
        raise Ec2Error("InvalidAction", "The path of this API is /services/Cloud.", 404)
    if environ["REQUEST_METHOD"] not in ("GET", "POST"):
        raise Ec2Error("InvalidAction", "This API supports only the methods GET and POST.", 405)
    length = environ.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or len(length) > 18 or int(length) > LONGEST_BODY:
        raise Ec2Error("RequestEntityTooLarge", f"The request body exceeds {LONGEST_BODY} bytes.", 413)
    body = environ["wsgi.input"].read(int(length)) if length != "0" else b""
    if body.count(b"&") + environ["ec2.query"].count("&") > MOST:  # before parsing, which is slow
        raise Ec2Error("InvalidParameterValue", f"The request has more than {MOST} parameters.")
    digest = hashlib.sha256(body).hexdigest()
    return signed_request({**environ, "QUERY_STRING": environ["ec2.query"]}, body, digest)


def build(site: Ec2Site, who: Signers, beside: dict[str, WSGIApplication] | None = None,
          clock: Callable[[], float] = time.time, taken: TakenSignatures | None = None) -> WSGIApplication:
    """Return the API with its middleware. ``beside``: other applications to serve, by the first part of their path."""
    return stacked(MountedApi(Ec2Application(site, who, clock, taken), beside or {}), (
        lambda inner: RequestId(inner, (HEADER, "x-amzn-requestid")),
        lambda inner: AccessLog(inner, "ec2", ACCESS_LOG)))


def from_conf(conductor: ConductorRPC, objects: ObjectStoreRPC, conf: Options, policy: Policy | None = None,
              taken: TakenSignatures | None = None) -> WSGIApplication:
    """Build the API from ``conf``; ``conductor`` and ``objects`` are RPC clients, and all workers share ``taken``.

    Raises errors.config.Ec2Url, errors.config.Credentials and errors.config.RegionList for invalid options.
    """
    site = Ec2Site(conductor, policy or Policy(oslo_conf(conf)), IdCache(conductor), options_from_conf(conf), objects)
    health = healthcheck.Healthcheck(None, oslo_conf(conf))
    return build(site, signers.from_conf(conf), {"healthcheck": health}, taken=taken)


def options_from_conf(conf: Options) -> Ec2Options:
    """Return the API's options from ``conf``. Raises errors.config.RegionList if ``region_list`` is invalid."""
    return Ec2Options(
        endpoint=f"{conf.ec2_scheme}://{netutils.escape_ipv6(conf.ec2_host)}:{conf.ec2_port}{conf.ec2_path}",
        regions=_regions(conf.region_list), scheme=conf.ec2_scheme, port=conf.ec2_port, path=conf.ec2_path,
        private_dns_show_ip=conf.ec2_private_dns_show_ip, strict_validation=conf.ec2_strict_validation,
        vpn_key_suffix=conf.vpn_key_suffix, has_neutron=neutron_in_use(conf),
        max_local_block_devices=conf.max_local_block_devices)


def _regions(rows: Iterable[str]) -> dict[str, str]:
    """Map region names to hosts, from rows ``name=host``. Raises errors.config.RegionList."""
    found: dict[str, str] = {}
    for row in rows:
        name, equals, host = row.partition("=")
        if not equals or not name.strip() or not host.strip():
            raise errors.config.RegionList()
        found[name.strip()] = host.strip()
    return found
