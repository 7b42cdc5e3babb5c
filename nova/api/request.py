"""What a handler gets and gives: the checked request, links and pages, and an answer that is more than a body."""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nova import errors
from nova.api.routing import Route
from nova.model.base import Json, Page, Scope
from nova.rpc.contracts.cert import CertRPC
from nova.rpc.contracts.console_auth import ConsoleAuthRPC
from nova.web.dispatch import APIRequest, Site
from nova.web.query import query_pairs


@dataclass(frozen=True, kw_only=True)
class ApiOptions:
    """Values of ``[api]`` (and a few neighbours) that answers depend on."""

    max_limit: int = 1000
    compute_link_prefix: str | None = None
    glance_link_prefix: str | None = None
    enable_instance_password: bool = True
    password_length: int = 12
    skips_silent_cells: bool = True
    max_local_block_devices: int = 3
    floating_pool: str = "nova"  # of nova-network's floating addresses whose maker names none; and their device
    public_interface: str = "eth0"


@dataclass(frozen=True)
class Answer:
    """An answer with a status or headers of its own. ``body`` None: none; bytes: as they are; else encoded as JSON."""

    body: Any = None
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ComputeSite(Site):
    """``conductor``: a client of ConductorRPC. ``networks``: whose they are, neutron or nova-network."""

    consoles: ConsoleAuthRPC
    certs: CertRPC
    options: ApiOptions = ApiOptions()
    networks: str = "neutron"


class Links:
    """Makes links. ``self`` carries the version (and the project only when the request's path had it)."""

    def __init__(self, base: str, version: str, project: str | None, glance: str | None = None) -> None:
        project_part = f"/{project}" if project else ""
        self.bookmarks = base.rstrip("/") + project_part
        self.selves = f"{base.rstrip('/')}/{version}{project_part}"
        self.images = f"{(glance or base).rstrip('/')}/images"  # where Glance shows them: no project

    def of(self, collection: str, id: str) -> list[dict[str, str]]:
        """The two links of one thing: ``self``, which has the version, and ``bookmark``, which has none."""
        tail = f"/{collection}/{id}"
        return [{"rel": "self", "href": self.selves + tail}, {"rel": "bookmark", "href": self.bookmarks + tail}]

    def self_of(self, collection: str, id: str) -> str:
        """The address of one thing at this version, as a ``Location`` header has it."""
        return f"{self.selves}/{collection}/{id}"

    def bookmark(self, collection: str, id: str) -> list[dict[str, str]]:
        """A list of one link, without a version: for what only names another thing."""
        return [{"rel": "bookmark", "href": f"{self.bookmarks}/{collection}/{id}"}]

    def image(self, id: str) -> list[dict[str, str]]:
        """The same for an image: below Glance's address where it is configured."""
        return self.bookmark("images", id)


@dataclass
class Request(APIRequest):
    """One request; ``version`` is N of 2.N. ``legacy``: it came below /v2. ``route_path``: without the project."""

    site: ComputeSite
    row: Route
    legacy: bool = False
    project_in_url: str | None = None
    route_path: str = ""
    _links: Links | None = None

    @property
    def consoles(self) -> ConsoleAuthRPC:
        """A client of ConsoleAuthRPC, which gives out and shows tokens of consoles."""
        return self.site.consoles

    @property
    def certs(self) -> CertRPC:
        """A client of CertRPC, which has the certificates of the cloud."""
        return self.site.certs

    @property
    def options(self) -> ApiOptions:
        """The configured values that answers depend on."""
        return self.site.options

    @property
    def links(self) -> Links:
        """What makes links for this request. They begin with ``[api]compute_link_prefix``, or else with the address
        that the client asked."""
        if self._links is None:
            base = self.options.compute_link_prefix or self.http.environ.get("nova.base_url") or self.http.host_url
            self._links = Links(base, "v2" if self.legacy else "v2.1", self.project_in_url,
                                self.options.glance_link_prefix)
        return self._links

    # policy

    def allows(self, rule: str, project_id: str | None = None, user_id: str | None = None) -> bool:
        """Whether ``rule`` passes: for what only decides on a part of the answer."""
        return self.site.policy.allows(self.context, rule, self.target(project_id, user_id))

    @property
    def project_id(self) -> str:
        """The caller's own project. api.NeedsProject: the token is of none, which a rule that passes does not tell."""
        if not self.context.project_id:
            raise errors.api.NeedsProject()
        return self.context.project_id

    def scope(self) -> Scope:
        """What the caller's look-ups may see: all for an admin, else the own project, and nothing without one."""
        return Scope() if self.context.is_admin else Scope(project_id=self.context.project_id or "")

    # pages

    def page(self) -> Page:
        """``limit`` (cut down to the configured maximum), ``marker`` and ``offset`` of the query."""
        return Page(limit=self.limit(), marker=self.query.one("marker"), offset=self.query.one("offset", 0))

    def limit(self) -> int:
        """How many items a page has: what the query asks for, ``[api]max_limit`` at most."""
        asked = self.query.one("limit")
        return self.options.max_limit if asked is None else min(asked, self.options.max_limit)

    def next_links(self, key: str, items: Sequence[Json], marker: str | None) -> dict[str, list[dict[str, str]]]:
        """``{key: [next link]}`` when the page is full (even if nothing follows), else nothing.

        The link has the request's other parameters, but for an offset, which was for the first page.
        """
        limit = self.limit()
        if not items or len(items) < limit or marker is None:
            return {}
        pairs = [(name, value) for name, value in query_pairs(self.http.environ) if name not in ("marker", "offset")]
        tail = urllib.parse.urlencode([*pairs, ("marker", marker)])
        return {key: [{"rel": "next", "href": f"{self.links.selves}{self.route_path}?{tail}"}]}
