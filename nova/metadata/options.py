"""What the metadata service was configured with, as one value."""

from __future__ import annotations

import dataclasses
from typing import Any

from nova.errors import Invalid
from nova.model.guest_tree import TreeOptions


class NoSecret(Invalid):
    code = "metadata.no_secret"
    message = ("nova.conf: [neutron]service_metadata_proxy is set, so [neutron]metadata_proxy_shared_secret must be "
               "set too, to the value that the proxy signs with")


@dataclasses.dataclass(frozen=True, kw_only=True)
class MetadataOptions:
    """``behind_proxy``: a signing proxy names the server that asks. ``secret`` is in no log."""

    tree: TreeOptions = TreeOptions()
    cache_s: float = 15
    behind_proxy: bool = False
    secret: str = dataclasses.field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.behind_proxy and not self.secret:
            raise NoSecret()


def from_conf(conf: Any) -> MetadataOptions:
    """Read once, at start. NoSecret is the sentence to stop with."""
    return MetadataOptions(tree=tree_options(conf.api), cache_s=conf.api.metadata_cache_expiration,
                           behind_proxy=conf.neutron.service_metadata_proxy,
                           secret=conf.neutron.metadata_proxy_shared_secret)


def tree_options(api: Any) -> TreeOptions:
    """Of the ``[api]`` section."""
    return TreeOptions(dhcp_domain=api.dhcp_domain or "",
                       skip_versions=tuple((api.config_drive_skip_versions or "").split()))
