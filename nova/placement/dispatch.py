"""Request dispatch: finds the operation, checks in order (version, path, method, policy, media, query, body),
answers."""

from __future__ import annotations

import collections
from wsgiref.types import WSGIEnvironment

import webob

from nova import errors, failures
from nova.placement import faults, versions
from nova.placement.faults import JSON
from nova.placement.request import PlacementAnswer, PlacementAPIRequest, canonical, time_headers
from nova.placement.routes import ROUTES
from nova.placement.routing import PlacementRoute
from nova.web import bodies, paths
from nova.web.dispatch import Dispatcher, Headers, Site, check_policy, encoded
from nova.web.formats import is_uuid
from nova.web.query import query_pairs
from nova.web.ranges import within
from nova.web.routing import Router, at_version

LONGEST_PART = 4096  # of a path; a part longer than a name is rejected by its row
MOST = paths.LONGEST_NAME  # characters of a trait or a class

#: Path parameters that are UUIDs, with the error for an invalid one.
UUIDS = {"uuid": errors.placement.ResourceProviderNotFound, "consumer": errors.placement.ConsumerMalformed}


def _check_uuids(request: PlacementAPIRequest) -> None:
    """Check and normalize the UUIDs in the path. Raises placement.ResourceProviderNotFound,
    placement.ConsumerMalformed."""
    for name, text in request.named.items():
        if name in UUIDS:
            if not is_uuid(text):
                raise UUIDS[name](uuid=text)
            request.named[name] = canonical(text)


def _check_name(request: PlacementAPIRequest) -> None:
    """Check the length of a name. Raises placement.NameInvalid if it would be created, otherwise
    placement.NoSuchPath."""
    if len(name := request.named.get("name", "")) <= MOST:
        return
    if request.row.method != "PUT":
        raise errors.placement.NoSuchPath
    what = "trait" if request.row.path.startswith("/traits") else "resource class"
    raise errors.placement.NameInvalid(name=f"{name[:80]}...", what=what, most=MOST)


def _check_accept(request: PlacementAPIRequest) -> None:
    """Check the Accept header. Raises placement.NotAcceptable if it excludes JSON and a success would have a body."""
    silent = request.row.silent_since
    if request.row.method == "DELETE" or silent is not None and within(request.version, silent, None):
        return
    if "HTTP_ACCEPT" in request.http.environ and not request.http.accept.acceptable_offers([JSON]):
        raise errors.placement.NotAcceptable


def _check_query(request: PlacementAPIRequest) -> None:
    """Check the query by the row's table. Raises placement.QueryBadValue, placement.QueryDuplicateKey."""
    row, version = request.row, request.version
    # ValueError: more parameters than the library reads
    with failures.replaced((errors.api.BadQuery, ValueError),
            lambda error: errors.placement.QueryBadValue(name="query", reason=str(error))):
        pairs = query_pairs(request.http.environ)
    times = collections.Counter(name for name, _ in pairs)
    for name, count in times.items():
        if count > 1 and not row.query.may_repeat(name, version):
            raise errors.placement.QueryDuplicateKey(name=name[:80])
    with failures.replaced(errors.api.BadInput,
            lambda error: errors.placement.QueryBadValue(name=error.data["field"], reason=error.data["reason"])):
        request.query = row.query.check(pairs, version)


def _check_body(request: PlacementAPIRequest) -> None:
    """Check the body by the row's table. Raises api.MediaType, placement.NoContentType, placement.MalformedBody,
    api.BadInput; a missing provider (placement.ResourceProviderNotFound) takes precedence."""
    try:
        _read_body(request)
    except errors.Invalid:
        if (uuid := request.named.get("uuid")) is not None and request.http.environ.get("CONTENT_TYPE"):
            request.conductor.get_provider(uuid)
        raise


def _read_body(request: PlacementAPIRequest) -> None:
    row, http = request.row, request.http
    if row.body is None or not within(request.version, row.body_since, row.body_until):
        return
    raw = http.body
    if not http.environ.get("CONTENT_TYPE"):
        raise errors.placement.NoContentType if raw else errors.api.MediaType(content_type="(none)")
    value = bodies.read(http)
    if value is None and not raw:
        raise errors.placement.MalformedBody(reason="the request needs a body.")
    request.body = row.body.check(value, request.version)


class PlacementAPI(Dispatcher[PlacementAPIRequest]):
    """The dispatcher for every Placement path except the root."""

    checks = (check_policy, _check_uuids, _check_name, _check_accept, _check_query, _check_body)

    def __init__(self, site: Site) -> None:
        self.router: Router[PlacementRoute] = Router(ROUTES)
        self.site = site

    def begin(self, environ: WSGIEnvironment) -> PlacementAPIRequest:
        http = webob.Request(environ)
        version = versions.SERIES.choose(environ, http)
        row, named = self._find(environ, version)
        return PlacementAPIRequest(http, self.site, environ["nova.context"], version, row, named)

    def _find(self, environ: WSGIEnvironment, version: int) -> tuple[PlacementRoute, dict[str, str]]:
        """Return the operation and its path parameters. Raises placement.NoSuchPath; placement.MethodNotAllowed if no
        version has the method here, or this version has only others."""
        path, method = paths.text_of(environ, LONGEST_PART), environ["REQUEST_METHOD"]
        if path is None:
            raise errors.placement.NoSuchPath
        path = f"/{path.removeprefix('/')}"
        rows = self.router.rows(path)
        now = at_version(rows, version)
        if not rows or not now and any(row.method == method for row in rows):
            raise errors.placement.NoSuchPath
        row = next((row for row in now if row.method == method), None)
        if row is None:
            raise faults.not_allowed(environ, {row.method for row in now or rows})
        found = self.router.match(method, path)
        return row, found[1] if found else {}

    def reply(self, request: PlacementAPIRequest, answer: object) -> tuple[int, Headers, bytes]:
        given = answer if isinstance(answer, PlacementAnswer) else PlacementAnswer(answer)
        status, content = given.status or (204 if given.body is None else 200), encoded(given.body)
        headers = [("content-type", JSON)] if content else []
        if status != 204:
            headers.append(("content-length", str(len(content))))
        if given.location is not None:
            headers.append(("location", request.http.host_url + request.prefix + given.location))
        if (content or given.at or request.row.method == "GET") and versions.answers_have_times(request.version):
            headers += time_headers(given.at)
        return status, headers, content
