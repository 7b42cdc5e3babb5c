"""Input and output of handlers: the validated request, links and pages, and responses with status and headers."""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nova import errors
from nova.api.routing import Route
from nova.model.base import Page, Scope
from nova.rpc.contracts.cert import CertRPC
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.console_auth import ConsoleAuthRPC
from nova.web.dispatch import APIRequest, Site
from nova.web.query import query_pairs


@dataclass(frozen=True, kw_only=True)
class ApiOptions:
    """Configured values, mostly of ``[api]``, that responses depend on."""

    max_limit: int = 1000
    compute_link_prefix: str | None = None
    glance_link_prefix: str | None = None
    enable_instance_password: bool = True
    password_length: int = 12
    skips_silent_cells: bool = True
    max_local_block_devices: int = 3
    floating_pool: str = "nova"  # default pool of new floating addresses in nova-network; and their interface
    public_interface: str = "eth0"


@dataclass(frozen=True)
class Answer:
    """A response with its own status or headers. ``body`` None: no body; bytes: unchanged; else encoded as JSON."""

    body: Any = None
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ComputeSite(Site):
    """Services and settings of the compute API. ``conductor``: a client of ConductorRPC. ``networks``: the network
    service, neutron or nova-network."""

    conductor: ConductorRPC
    consoles: ConsoleAuthRPC
    certs: CertRPC
    options: ApiOptions = ApiOptions()
    networks: str = "neutron"


class Links:
    """Builder of links. ``self`` has the version (and the project only if the request's path has it)."""

    def __init__(self, base: str, version: str, project: str | None, glance: str | None = None) -> None:
        project_part = f"/{project}" if project else ""
        self.bookmarks = base.rstrip("/") + project_part
        self.selves = f"{base.rstrip('/')}/{version}{project_part}"
        self.images = f"{(glance or base).rstrip('/')}/images"  # Glance's address, without a project

    def of(self, collection: str, id: str) -> list[dict[str, str]]:
        """Return the two links of a resource: ``self``, with the version, and ``bookmark``, without it."""
        tail = f"/{collection}/{id}"
        return [{"rel": "self", "href": self.selves + tail}, {"rel": "bookmark", "href": self.bookmarks + tail}]

    def self_of(self, collection: str, id: str) -> str:
        """Return the address of a resource at this version, for a ``Location`` header."""
        return f"{self.selves}/{collection}/{id}"

    def bookmark(self, collection: str, id: str) -> list[dict[str, str]]:
        """Return a list with one link without a version, for references to another resource."""
        return [{"rel": "bookmark", "href": f"{self.bookmarks}/{collection}/{id}"}]

    def image(self, id: str) -> list[dict[str, str]]:
        """Return the bookmark of an image: under Glance's address, if configured."""
        return self.bookmark("images", id)


@dataclass
class Request(APIRequest):
    """An API request as handlers see it. ``version``: N of 2.N. ``legacy``: the request came under /v2. ``route_path``:
    without the project."""

    site: ComputeSite
    row: Route
    legacy: bool = False
    project_in_url: str | None = None
    route_path: str = ""
    _links: Links | None = None

    @property
    def conductor(self) -> ConductorRPC:
        """Client of the conductors' contract."""
        return self.site.conductor

    @property
    def consoles(self) -> ConsoleAuthRPC:
        """Client of ConsoleAuthRPC, which issues and shows console tokens."""
        return self.site.consoles

    @property
    def certs(self) -> CertRPC:
        """Client of CertRPC, for the certificates of the cloud."""
        return self.site.certs

    @property
    def options(self) -> ApiOptions:
        """Configured values that responses depend on."""
        return self.site.options

    @property
    def links(self) -> Links:
        """Builder of links for this request. They start with ``[api]compute_link_prefix``, or else with the address
        that the client used."""
        if self._links is None:
            base = self.options.compute_link_prefix or self.http.environ.get("nova.base_url") or self.http.host_url
            self._links = Links(base, "v2" if self.legacy else "v2.1", self.project_in_url,
                                self.options.glance_link_prefix)
        return self._links

    # policy

    def allows(self, rule: str, project_id: str | None = None, user_id: str | None = None) -> bool:
        """Return whether ``rule`` passes, for rules that decide only on a part of the response."""
        return self.site.policy.allows(self.context, rule, self.target(project_id, user_id))

    @property
    def project_id(self) -> str:
        """The caller's own project. Raises api.NeedsProject for a token without a project, which policy does not
        exclude."""
        if not self.context.project_id:
            raise errors.api.NeedsProject()
        return self.context.project_id

    def scope(self) -> Scope:
        """Return the scope of the caller's look-ups: all for an admin, else the own project, and nothing without
        one."""
        return Scope() if self.context.is_admin else Scope(project_id=self.context.project_id or "")

    # pages

    def page(self) -> Page:
        """Return ``limit`` (reduced to the configured maximum), ``marker`` and ``offset`` of the query."""
        return Page(limit=self.limit(), marker=self.query.one("marker"), offset=self.query.one("offset", 0))

    def limit(self) -> int:
        """Return the number of items in a page: the requested one, at most ``[api]max_limit``."""
        asked = self.query.number("limit")
        return self.options.max_limit if asked is None else min(asked, self.options.max_limit)

    def next_links(self, key: str, items: Sequence[object], marker: str | None) -> dict[str, list[dict[str, str]]]:
        """Return ``{key: [next link]}`` if the page is full (even if no items follow), else an empty dict.

        The link has the request's other parameters, except an offset, which was for the first page.
        """
        limit = self.limit()
        if not items or len(items) < limit or marker is None:
            return {}
        pairs = [(name, value) for name, value in query_pairs(self.http.environ) if name not in ("marker", "offset")]
        tail = urllib.parse.urlencode([*pairs, ("marker", marker)])
        return {key: [{"rel": "next", "href": f"{self.links.selves}{self.route_path}?{tail}"}]}
