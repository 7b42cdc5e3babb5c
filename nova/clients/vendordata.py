"""Vendordata: the operator's data for every guest, from a file and from the operator's services.

The services are called with POST, for one guest at a time. A failure or an invalid answer yields an empty object, so
that guests do not wait for its repair. Used by the metadata service and for config drives.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nova import errors
from nova.conf._options import Options
from nova.model.guest.guests import GuestFacts

if TYPE_CHECKING:
    import requests

LOG = logging.getLogger(__name__)

AUTH_SECTION = "vendordata_dynamic_auth"
USER_AGENT = "openstack-nova-vendordata"
LARGEST_ANSWER = 1 << 20  # bytes
LONGEST_S = 30.0  # total time for an answer, in addition to the timeout of each read
STATIC, DYNAMIC = "StaticJSON", "DynamicJSON"


class Target(NamedTuple):
    name: str
    url: str


class VendorOptions(NamedTuple):
    """Options ``[api]vendordata_*``. ``timeouts``: seconds to connect, and to read (None: unlimited)."""

    providers: Sequence[str] = (STATIC,)
    static_file: str | None = None
    targets: Sequence[Target] = ()
    timeouts: tuple[float, float | None] = (5, 5)
    certificates: str = ""
    failure_fatal: bool = False


class Vendordata:
    """Vendordata of all providers. ``token`` returns a service token, or None if no credentials are configured."""

    def __init__(self, options: VendorOptions, token: Callable[[], str | None] = lambda: None) -> None:
        self._options, self._token = options, token
        self._http: Any = _http() if DYNAMIC in options.providers else None

    def static(self) -> dict[str, object] | None:
        """Return the file's object. It is read each time, because an operator edits it without a restart. None: there
        is no such provider."""
        if STATIC not in self._options.providers:
            return None
        path = self._options.static_file
        if not path:
            return {}
        try:
            with open(path) as stream:
                found = json.load(stream)
        except (OSError, ValueError) as error:
            LOG.warning("guests get no static vendordata: %s: %s", path, error)
            return {}
        if not isinstance(found, dict):
            LOG.warning("guests get no static vendordata: %s is not a JSON object", path)
            return {}
        return found

    def dynamic(self, facts: GuestFacts) -> dict[str, object]:
        """Return each target's object by its name. Raises metadata.VendordataFailed only if
        ``vendordata_dynamic_failure_fatal`` is set."""
        if DYNAMIC not in self._options.providers:
            return {}
        return {target.name: self._ask(target, facts) for target in self._options.targets}

    def _ask(self, target: Target, facts: GuestFacts) -> object:
        try:
            headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": USER_AGENT}
            token = self._token()
            if token:
                headers["X-Auth-Token"] = token
            answer = self._http.post(target.url, data=json.dumps(question(facts)), headers=headers, stream=True,
                                     timeout=self._options.timeouts, verify=self._options.certificates or True,
                                     allow_redirects=False)  # the token is only for this address
            with answer:
                answer.raise_for_status()
                if answer.is_redirect:
                    raise ValueError(f"it redirects ({answer.status_code}): configure the target address instead")
                return json.loads(_whole(answer))
        except Exception as error:  # errors of keystone, the network, TLS, or the service all belong to it
            failure = errors.metadata.VendordataFailed(name=target.name, reason=str(error))
            if self._options.failure_fatal:
                raise failure from error
            LOG.warning("%s", failure, extra={"server": facts.uuid})
            return {}


def _whole(answer: requests.Response) -> bytes:
    """Return the answer's text, of at most LARGEST_ANSWER bytes and within LONGEST_S, even if it arrives slowly. Raises
    ValueError."""
    text, until = b"", time.monotonic() + LONGEST_S
    while len(text) <= LARGEST_ANSWER and (part := answer.raw.read1(65536, decode_content=True)):
        text += part
        if time.monotonic() > until:
            raise ValueError(f"it was not complete after {LONGEST_S:.0f} s")
    if len(text) > LARGEST_ANSWER:
        raise ValueError(f"more than {LARGEST_ANSWER} bytes")
    return text


def _http() -> object:
    """Return an HTTP session. Imported here, because most clouds have no such service, and every metadata worker would
    load the library."""
    import requests

    return requests.Session()


def question(facts: GuestFacts) -> dict[str, object]:
    """Return the JSON about the guest that a target receives. ``user-data`` is base64 text."""
    return {"project-id": facts.project_id, "instance-id": facts.uuid, "image-id": facts.image_id or None,
            "user-data": facts.user_data, "hostname": facts.hostname, "metadata": dict(facts.metadata),
            "boot-roles": ""}


def parse_targets(entries: Sequence[str]) -> tuple[Target, ...]:
    """Return the targets of ``name@url`` entries; invalid and duplicate entries are skipped and logged."""
    found: dict[str, Target] = {}
    for entry in entries:
        name, _at, url = entry.strip().partition("@")
        if not name or not url.startswith(("http://", "https://")):
            LOG.warning("[api]vendordata_dynamic_targets: skipping %s, which is not NAME@URL", entry)
        elif name in found:
            LOG.warning("[api]vendordata_dynamic_targets: %s is defined twice; using the first", name)
        else:
            found[name] = Target(name, url)
    return tuple(found.values())


def from_conf(conf: Options) -> Vendordata:
    """Return vendordata for the configuration, read once, at start (called by ``nova.cmd``). Raises
    metadata.VendordataProvider, config.Credentials, whose message ends the process."""
    api = conf.api
    for name in api.vendordata_providers:
        if name not in (STATIC, DYNAMIC):
            raise errors.metadata.VendordataProvider(name=name)
    options = VendorOptions(
        providers=tuple(api.vendordata_providers), static_file=api.vendordata_jsonfile_path,
        targets=parse_targets(api.vendordata_dynamic_targets),
        timeouts=(api.vendordata_dynamic_connect_timeout, api.vendordata_dynamic_read_timeout or None),
        certificates=api.vendordata_dynamic_ssl_certfile, failure_fatal=api.vendordata_dynamic_failure_fatal)
    return Vendordata(options, _token(conf) if DYNAMIC in options.providers else lambda: None)


def _token(conf: Options) -> Callable[[], str | None]:
    """Return a token source for that section alone: a target must not receive a token of nova's other credentials."""
    from keystoneauth1 import session as ksession

    from nova.clients import session as our_session

    auth = our_session.load_auth(conf, AUTH_SECTION)
    if auth is None:
        return lambda: None
    session = ksession.Session(auth=auth, timeout=10)
    return lambda: session.get_token()
