"""The request that a handler gets: the caller's context, the API version, and the conductor client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from nova.context import RequestContext
from nova.legacy.ec2.faults import Ec2Error
from nova.legacy.ec2.ids import IdCache
from nova.model.base import Scope
from nova.policies import Policy
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.objectstore import ObjectStoreRPC

#: The newest API version that old clients sent: responses up to this version have the old shape.
LAST_OLD_VERSION = "2014-02-01"


@dataclass(frozen=True, kw_only=True)
class Ec2Options:
    """The configuration of the EC2 API.

    ``endpoint``: this API's URL, as DescribeRegions returns it. ``regions``: name -> host, from ``region_list``; empty:
    one region, ``nova``.
    """

    endpoint: str = "http://127.0.0.1:8773/services/Cloud"
    regions: Mapping[str, str] = field(default_factory=dict)
    scheme: str = "http"
    port: int = 8773
    path: str = "/services/Cloud"
    private_dns_show_ip: bool = False
    strict_validation: bool = True
    vpn_key_suffix: str = "-vpn"
    has_neutron: bool = True
    max_local_block_devices: int = 3


@dataclass(frozen=True)
class Ec2Site:
    """The collaborators of the application, shared by all requests.

    ``objects``: client of the object store, which registers bundled images; None: no object store is configured.
    """

    conductor: ConductorRPC
    policy: Policy
    ids: IdCache
    options: Ec2Options = Ec2Options()
    objects: ObjectStoreRPC | None = None


class DryRun(Ec2Error):
    """The result of a dry run: the request is allowed, and nothing was changed."""

    def __init__(self) -> None:
        super().__init__("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)


#: Calls that change nothing that users can see: a dry run makes them, too.
HARMLESS = frozenset({"assign_ec2_numbers", "list_security_groups"})


class Rehearsal:
    """The conductor client of a dry run: passes read-only calls on, and raises DryRun for all others."""

    def __init__(self, client: ConductorRPC) -> None:
        self._client = client

    def __getattr__(self, name: str) -> object:
        if ConductorRPC.methods[name].reads or name in HARMLESS:
            return getattr(self._client, name)
        raise DryRun


@dataclass
class Ec2Request:
    """An EC2 request. ``version``: the API version, as the client wrote it.

    ``said``: id -> EC2 id, of this request; error messages use them.
    """

    context: RequestContext
    site: Ec2Site
    version: str
    dry_run: bool = False
    said: dict[str, str] = field(default_factory=dict)

    @property
    def is_old(self) -> bool:
        """True if the response has the shape of old API versions."""
        return self.is_of_first_years(self.version)

    @staticmethod
    def is_of_first_years(version: str) -> bool:
        """Return whether the version is old. Versions are ISO dates, so text comparison works; none means today's."""
        return "" < version <= LAST_OLD_VERSION

    @property
    def conductor(self) -> ConductorRPC:
        """The client of ConductorRPC; in a dry run, a client that changes nothing."""
        return cast(ConductorRPC, Rehearsal(self.site.conductor)) if self.dry_run else self.site.conductor

    def begin(self) -> None:
        """Mark the start of a change that is not made by a conductor call. Raises DryRun in a dry run."""
        if self.dry_run:
            raise DryRun

    @property
    def options(self) -> Ec2Options:
        """The configuration that responses depend on."""
        return self.site.options

    @property
    def project_id(self) -> str:
        """The project whose resources the request is about."""
        return self.context.project_id or ""

    @property
    def decorates(self) -> bool:
        """True if some names include their project: for administrators with old API versions."""
        return self.is_old and self.context.is_admin

    def scope(self) -> Scope:
        """Return the scope of lookups: the caller's project; all projects for administrators with old clients."""
        return Scope() if self.decorates else Scope(project_id=self.project_id)

    def authorize(self, rule: str, project_id: str | None = None, user_id: str | None = None) -> None:
        """Check the compute API's policy rule for a resource of the project and user. Raises Forbidden."""
        self.site.policy.authorize(self.context, rule, {"project_id": project_id or self.context.project_id,
                                                        "user_id": user_id or self.context.user_id})

    # ids

    def ids(self, prefix: str, ids: Iterable[str]) -> Mapping[str, str]:
        """Map ids to EC2 ids."""
        found = self.site.ids.of(prefix, ids)
        self.said.update(found)
        return found

    def id(self, prefix: str, id: str) -> str:
        """Return the EC2 id of one id."""
        return self.ids(prefix, (id,))[id]

    def meant(self, prefix: str, shown: Iterable[str]) -> Mapping[str, str]:
        """Map EC2 ids to ids. Raises the resource type's Ec2Error if one is malformed or absent."""
        found = self.site.ids.meant(prefix, shown)
        self.said.update({id: one for one, id in found.items()})
        return found

    def one_meant(self, prefix: str, shown: str) -> str:
        """Return the id of one EC2 id."""
        return self.meant(prefix, (shown,))[shown]

    def in_words_of_ec2(self, message: str) -> str:
        """Return nova's message with ids replaced by the EC2 ids of this request."""
        for id, shown in self.said.items():
            message = message.replace(id, shown)
        return message
