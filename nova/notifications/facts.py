"""Data of an event, as the conductor passes them on: read once, right after the commit, and without secrets."""

from __future__ import annotations

import dataclasses
import datetime
import traceback
from collections.abc import Mapping
from typing import Any

from nova.context import RequestContext
from nova.model.base import Time
from nova.model.flavor.flavors import Flavor
from nova.model.image.images import Image
from nova.model.network.networks import Interface
from nova.model.volumes import VolumeCounts

MOST_TRACEBACK = 8000  # characters


@dataclasses.dataclass(frozen=True, slots=True)
class ShownServer:
    """The columns of a server's row in payloads. User data, injected files and passwords are not among them."""

    id: int
    uuid: str
    deleted: int
    project_id: str
    user_id: str
    name: str
    description: str | None
    hostname: str | None
    created_at: Time
    updated_at: Time | None
    launched_at: Time | None
    terminated_at: Time | None
    deleted_at: Time | None
    vm_state: str
    task_state: str | None
    power_state: int
    progress: int
    host: str | None
    node: str | None
    availability_zone: str | None
    pinned_availability_zone: str | None
    flavor: Flavor
    image: Image | None
    image_id: str
    kernel_id: str
    ramdisk_id: str
    interfaces: tuple[Interface, ...] | None
    security_groups: tuple[str, ...] | None
    scheduler_hints: Mapping[str, object] | None
    disk_config: str
    key_name: str | None
    public_key: str | None
    key_type: str
    reservation_id: str
    trusted_certs: tuple[str, ...] | None
    access_ip_v4: str | None
    access_ip_v6: str | None
    locked_by: str | None
    locked_reason: str | None
    instance_name: str | None


SHOWN = tuple(field.name for field in dataclasses.fields(ShownServer))


def shown(row: object) -> ShownServer:
    """Return a row with only these columns: queued events stay small, and hold no secrets."""
    return ShownServer(**{name: getattr(row, name) for name in SHOWN})


@dataclasses.dataclass(frozen=True)
class Who:
    """The user who requested the operation. Tokens and names do not belong on a notification bus."""

    request_id: str = ""
    user_id: str | None = None
    project_id: str | None = None
    global_request_id: str | None = None

    @classmethod
    def of(cls, context: RequestContext) -> Who:
        """Return the user of a request's context, without the token."""
        return cls(context.request_id, context.user_id, context.project_id, context.global_request_id)

    def as_dict(self) -> dict[str, object]:
        """Return the message's context, also with the keys that older consumers use."""
        return {**dataclasses.asdict(self), "user": self.user_id, "tenant": self.project_id}

    def redacted_copy(self) -> Who:
        """Return the context itself: oslo.messaging calls this before it sends one, and this one has no secrets to
        remove."""
        return self


@dataclasses.dataclass(frozen=True)
class Failure:
    """An error as in payloads. ``traceback`` contains lines of code, but no values."""

    exception: str
    message: str
    module: str = ""
    function: str = ""
    traceback: str = ""

    @classmethod
    def of(cls, error: Exception, where: str = "", trace: str = "") -> Failure:
        """Return an error's data. ``where`` and ``trace``: known data of an error that came in a reply, not as an
        exception."""
        frames = traceback.extract_tb(error.__traceback__)
        trace = trace or ("".join(traceback.format_exception(error)) if frames else "")
        return cls(type(error).__name__, str(getattr(error, "message", "") or error), type(error).__module__,
                   frames[-1].name if frames else where, trace[-MOST_TRACEBACK:])


@dataclasses.dataclass(frozen=True)
class NotifiedServer:
    """A server at one moment. ``row`` has the columns of payloads; ``extra`` the event's additional values (volume_id,
    new_flavor ...), by their names in the payload; ``shows_disks``: True to include volumes."""

    row: ShownServer
    who: Who = Who()
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    tags: tuple[str, ...] = ()
    instance_name: str | None = None
    failure: Failure | None = None
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    shows_disks: bool = False
    volumes: tuple[Any, ...] = ()


@dataclasses.dataclass(frozen=True)
class UsedVolume:
    """A guest's counters for a volume, read ``at`` a moment. ``row``: the server's row, with its owner and its zone."""

    row: Any
    counts: VolumeCounts
    at: datetime.datetime


@dataclasses.dataclass(frozen=True)
class UnreachedHypervisor:
    """A hypervisor that its host cannot reach. ``ip``: the host's address."""

    ip: str
    failure: Failure


@dataclasses.dataclass(frozen=True)
class SpecFacts:
    """A request to the scheduler: the server's row, and the operation's arguments and journaled data."""

    row: ShownServer
    count: int = 1
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    tried: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class TaskFacts:
    """A failed task of the conductor."""

    spec: SpecFacts
    state: str
    failure: Failure
    method: str = ""

    @property
    def uuid(self) -> str:
        """Uuid of the task's server."""
        return str(self.spec.row.uuid)


@dataclasses.dataclass(frozen=True)
class Period:
    """The period of a usage record."""

    beginning: datetime.datetime
    ending: datetime.datetime


@dataclasses.dataclass(frozen=True)
class States:
    """A server's states before and after a change."""

    old_state: str | None
    state: str | None
    old_task_state: str | None = None
    new_task_state: str | None = None
