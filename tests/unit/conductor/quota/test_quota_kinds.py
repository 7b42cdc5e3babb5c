"""Every limit at every level, in the conductor: what just fits is admitted, one more is refused and leaves nothing."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from nova import context, errors
from nova.model.quota.quotas import QuotaClass, QuotaUpdate
from nova.model.server.keypairs import NewKeypair
from nova.model.server.server_groups import ANTI_AFFINITY, NewServerGroup
from nova.model.server.servers import MetadataChange
from tests.fakes.small_cloud import DEMO, SmallCloud

NUMBERS = itertools.count()


def boot(cloud: SmallCloud) -> Any:
    return cloud.boot()


def key_pair(cloud: SmallCloud) -> Any:
    with context.entered(DEMO):
        cloud.control.create_keypair(NewKeypair(name=f"k{next(NUMBERS)}", user_id="joe", fingerprint="f",
                                                public_key="k"))


def group(cloud: SmallCloud) -> str:
    uuid = f"{next(NUMBERS):08x}-0000-0000-0000-000000000000"
    with context.entered(DEMO):
        cloud.control.create_server_group(NewServerGroup(uuid=uuid, name="g", policy=ANTI_AFFINITY))
    return uuid


class Members:
    """Servers of one group."""

    uuid = ""

    def __call__(self, cloud: SmallCloud) -> Any:
        self.uuid = self.uuid or group(cloud)
        return cloud.boot(scheduler_hints={"group": self.uuid})


class Metadata:
    """Items of one server."""

    uuid = ""

    def __call__(self, cloud: SmallCloud) -> Any:
        self.uuid = self.uuid or cloud.active()[0]
        with context.entered(DEMO):
            cloud.control.change_metadata(MetadataChange(uuid=self.uuid, items={f"key{next(NUMBERS)}": "x"}))


class Files:
    """A server with one file more than the last."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def __call__(self, cloud: SmallCloud) -> Any:
        self.paths.append(f"/{next(NUMBERS)}")
        return cloud.boot(files={path: base64.b64encode(b"x").decode() for path in self.paths})


Act = Callable[[SmallCloud], Any]
#: resource -> (what one more of it is, how much that takes of the limit)
KINDS: dict[str, tuple[Callable[[], Act], int]] = {
    "instances": (lambda: boot, 1), "cores": (lambda: boot, 1), "ram": (lambda: boot, 64),
    "key_pairs": (lambda: key_pair, 1), "server_groups": (lambda: group, 1), "server_group_members": (Members, 1),
    "metadata_items": (Metadata, 1), "injected_files": (Files, 1)}
#: But for a server's items: whoever of the project changes them, they have the project's limit.
CASES = [(resource, level) for resource in KINDS for level in ("class", "project", "user")
         if (resource, level) != ("metadata_items", "user")]


def limit(cloud: SmallCloud, level: str, resource: str, number: int) -> None:
    if level == "class":
        cloud.control.update_quota_class(QuotaClass(class_name="default", limits={resource: number}))
    else:
        cloud.control.update_quotas(QuotaUpdate(project_id="demo", user_id="joe" if level == "user" else None,
                                                limits={resource: number}))


@pytest.mark.parametrize(("resource", "level"), CASES)
def test_limit_when_it_is_reached_then_one_more_is_refused_until_it_is_raised(cloud: SmallCloud, resource: str,
                                                                              level: str) -> None:
    make, each = KINDS[resource]
    act = make()
    limit(cloud, level, resource, 2 * each)
    act(cloud)
    act(cloud)
    before = cloud.open_ledger()
    with pytest.raises(errors.OverQuota):
        act(cloud)
    assert cloud.open_ledger() == before
    limit(cloud, level, resource, 4 * each)
    act(cloud)
    for uuid in cloud.open_ledger():
        cloud.ended(uuid)
