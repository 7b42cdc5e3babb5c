"""What a handler gets: who asks, in which year's dialect, and the conductor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nova.context import RequestContext
from nova.legacy.ec2.faults import Ec2Error
from nova.legacy.ec2.ids import IdCache
from nova.model.base import Json, Scope
from nova.policies import Policy
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.objectstore import ObjectStoreRPC

#: The newest version that clients of the first years sent: up to it answers have their shape.
LAST_OLD_VERSION = "2014-02-01"


@dataclass(frozen=True, kw_only=True)
class Ec2Options:
    """``endpoint``: where clients reach this API, as DescribeRegions says it. ``regions``: name -> host, of
    ``region_list``; empty: one, ``nova``."""

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
    """What the application is made of; the same for all requests. ``objects``: who registers bundled images; None:
    no object store is configured."""

    conductor: ConductorRPC
    policy: Policy
    ids: IdCache
    options: Ec2Options = Ec2Options()
    objects: ObjectStoreRPC | None = None


class DryRun(Ec2Error):
    """All was allowed, and nothing is done, as the client asked."""

    def __init__(self) -> None:
        super().__init__("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)


#: Calls that change nothing that a user sees: they are made in a dry run, too.
HARMLESS = frozenset({"assign_ec2_numbers", "list_security_groups"})


class Rehearsal:
    """A client of a contract that asks all it is asked, and raises DryRun where something would change."""

    def __init__(self, client: ConductorRPC) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Json:
        if ConductorRPC.methods[name].reads or name in HARMLESS:
            return getattr(self._client, name)
        raise DryRun


@dataclass
class Ec2Request:
    """One request. ``version``: of the API, as the client wrote it. ``said``: EC2's ids of this request, by what they
    mean: errors name things so."""

    context: RequestContext
    site: Ec2Site
    version: str
    dry_run: bool = False
    said: dict[str, str] = field(default_factory=dict)

    @property
    def is_old(self) -> bool:
        """Whether the answer has the shape of the first years."""
        return self.is_of_first_years(self.version)

    @staticmethod
    def is_of_first_years(version: str) -> bool:
        """Versions are dates, so that text compares as they do; who says none gets today's shape."""
        return "" < version <= LAST_OLD_VERSION

    @property
    def conductor(self) -> Json:
        """A client of ConductorRPC; in a dry run, one that changes nothing."""
        return Rehearsal(self.site.conductor) if self.dry_run else self.site.conductor

    def begin(self) -> None:
        """What follows changes something that no call of the conductor does. DryRun."""
        if self.dry_run:
            raise DryRun

    @property
    def options(self) -> Ec2Options:
        """The configured values that answers depend on."""
        return self.site.options

    @property
    def project_id(self) -> str:
        """Whose things are meant."""
        return self.context.project_id or ""

    @property
    def decorates(self) -> bool:
        """Whether some names say whose they are, too: to administrators in the first years."""
        return self.is_old and self.context.is_admin

    def scope(self) -> Scope:
        """What is looked up: the own project's; of old clients that are administrators, everybody's."""
        return Scope() if self.decorates else Scope(project_id=self.project_id)

    def authorize(self, rule: str, project_id: str | None = None, user_id: str | None = None) -> None:
        """Forbidden unless the compute API's rule lets the caller act on what is the project's and user's."""
        self.site.policy.authorize(self.context, rule, {"project_id": project_id or self.context.project_id,
                                                        "user_id": user_id or self.context.user_id})

    # ids

    def ids(self, prefix: str, ids: Iterable[str]) -> Mapping[str, str]:
        """id -> EC2's id, of all of them."""
        found = self.site.ids.of(prefix, ids)
        self.said.update(found)
        return found

    def id(self, prefix: str, id: str) -> str:
        """EC2's id of one."""
        return self.ids(prefix, (id,))[id]

    def meant(self, prefix: str, shown: Iterable[str]) -> Mapping[str, str]:
        """EC2's id -> id, of all of them; refused by the kind's code where one is none."""
        found = self.site.ids.meant(prefix, shown)
        self.said.update({id: one for one, id in found.items()})
        return found

    def one_meant(self, prefix: str, shown: str) -> str:
        """What one of EC2's ids means."""
        return self.meant(prefix, (shown,))[shown]

    def in_words_of_ec2(self, message: str) -> str:
        """A message of the house with EC2's ids, where the client said them."""
        for id, shown in self.said.items():
            message = message.replace(id, shown)
        return message
