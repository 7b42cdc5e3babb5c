"""What the conductor hands over with an event: read once, right after it was committed, and no secret in it."""

from __future__ import annotations

import dataclasses
import datetime
import traceback
import types
from collections.abc import Mapping
from typing import Any

from nova.context import RequestContext
from nova.model.base import Json
from nova.model.volumes import VolumeCounts

MOST_TRACEBACK = 8000  # characters

#: The columns of a server's row that payloads show. User data, injected files and passwords are not among them.
SHOWN = ("id", "uuid", "deleted", "project_id", "user_id", "name", "description", "hostname", "created_at",
         "updated_at", "launched_at", "terminated_at", "deleted_at", "vm_state", "task_state", "power_state",
         "progress", "host", "node", "availability_zone", "pinned_availability_zone", "flavor", "image", "image_id",
         "kernel_id", "ramdisk_id", "interfaces", "security_groups", "scheduler_hints", "disk_config", "key_name",
         "public_key", "key_type", "reservation_id", "trusted_certs", "access_ip_v4", "access_ip_v6", "locked_by",
         "locked_reason")


def shown(row: object) -> Json:
    """A whole row without the rest: what waits to be sent is small, and holds no secret."""
    return types.SimpleNamespace(**{name: getattr(row, name) for name in SHOWN})


@dataclasses.dataclass(frozen=True)
class Who:
    """Who asked for it. Tokens and names are nobody's business on a notification bus."""

    request_id: str = ""
    user_id: str | None = None
    project_id: str | None = None
    global_request_id: str | None = None

    @classmethod
    def of(cls, context: RequestContext) -> Who:
        """Of the request whose context this is; the token stays behind."""
        return cls(context.request_id, context.user_id, context.project_id, context.global_request_id)

    def as_dict(self) -> dict[str, object]:
        """The message's context: also under the names that older consumers look for."""
        return {**dataclasses.asdict(self), "user": self.user_id, "tenant": self.project_id}

    def redacted_copy(self) -> Who:
        """What oslo.messaging asks of a context before it sends it: there is nothing in this one to take out."""
        return self


@dataclasses.dataclass(frozen=True)
class Failure:
    """An error as payloads show it. ``traceback`` holds lines of code, and no values."""

    exception: str
    message: str
    module: str = ""
    function: str = ""
    traceback: str = ""

    @classmethod
    def of(cls, error: Exception, where: str = "", trace: str = "") -> Failure:
        """``where`` and ``trace``: what is known of an error that came as an answer, not as an exception."""
        frames = traceback.extract_tb(error.__traceback__)
        trace = trace or ("".join(traceback.format_exception(error)) if frames else "")
        return cls(type(error).__name__, str(getattr(error, "message", "") or error), type(error).__module__,
                   frames[-1].name if frames else where, trace[-MOST_TRACEBACK:])


@dataclasses.dataclass(frozen=True)
class NotifiedServer:
    """A server at one moment. ``row`` has the columns that payloads show; ``extra`` what the event adds (volume_id,
    new_flavor ...), by the payload's names; ``shows_disks``: volumes are told too."""

    row: Any
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
    """What a guest did with a volume, counted ``at`` a moment. ``row``: the server's, with its owner and its zone."""

    row: Any
    counts: VolumeCounts
    at: datetime.datetime


@dataclasses.dataclass(frozen=True)
class UnreachedHypervisor:
    """A host's hypervisor that it cannot reach. ``ip``: the host's address."""

    ip: str
    failure: Failure


@dataclasses.dataclass(frozen=True)
class SpecFacts:
    """What the scheduler was asked: the server's row, and the operation's arguments and journaled data."""

    row: Any
    count: int = 1
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    tried: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class TaskFacts:
    """A task of the conductor's that failed."""

    spec: SpecFacts
    state: str
    failure: Failure
    method: str = ""

    @property
    def uuid(self) -> str:
        """The uuid of the server that the task was for."""
        return str(self.spec.row.uuid)


@dataclasses.dataclass(frozen=True)
class Period:
    """The time that a usage record is for."""

    beginning: datetime.datetime
    ending: datetime.datetime


@dataclasses.dataclass(frozen=True)
class States:
    """A server's states before and after a change."""

    old_state: str | None
    state: str | None
    old_task_state: str | None = None
    new_task_state: str | None = None
