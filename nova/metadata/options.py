"""What the metadata service was configured with, as one value; and what of that config drives are made with, too."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from nova import errors
from nova.conf.base import Options
from nova.model.guest.guest_network import TEMPLATE
from nova.model.guest.guest_tree import TreeOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class MetadataOptions:
    """``behind_proxy``: a signing proxy names the server that asks. ``secret`` is in no log. ``forwarded_for``: a proxy
    that signs nothing says the guest's address. ``in_flight``: requests of one guest that are in work at a time.

    ``address_cache_s``: what is known by an address alone is remembered no longer than another server may need to get
    that address, boot, and ask: nobody shall be told a predecessor's secrets.
    """

    tree: TreeOptions = TreeOptions()
    cache_s: float = 15
    address_cache_s: float = 3
    behind_proxy: bool = False
    secret: str = dataclasses.field(default="", repr=False)
    forwarded_for: bool = False
    in_flight: int = 8

    def __post_init__(self) -> None:
        if self.behind_proxy and not self.secret:
            raise errors.metadata.NoSecret()


def from_conf(conf: Options) -> MetadataOptions:
    """Read once, at start. metadata.NoSecret, metadata.Template: the sentence to stop with."""
    return MetadataOptions(tree=tree_options(conf), cache_s=conf.api.metadata_cache_expiration,
                           behind_proxy=conf.neutron.service_metadata_proxy,
                           secret=conf.neutron.metadata_proxy_shared_secret,
                           forwarded_for=conf.api.use_forwarded_for)


def tree_options(conf: Options) -> TreeOptions:
    """What shows in the files. metadata.Template."""
    return TreeOptions(dhcp_domain=conf.api.dhcp_domain or "",
                       network_template=_template(conf.injected_network_template),
                       skip_versions=tuple((conf.api.config_drive_skip_versions or "").split()))


def _template(path: str | None) -> str:
    """The operator's own, or ours. One in another language would reach guests as it is."""
    if not path:
        return TEMPLATE
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise errors.metadata.Template(reason=f"its file cannot be read: {error.strerror}") from None
    except UnicodeError:
        raise errors.metadata.Template(reason="its file is no text in UTF-8") from None
    if "$interfaces" not in text and "${interfaces}" not in text:
        raise errors.metadata.Template(reason="it must have the word $interfaces where the guest's interfaces go")
    return text
