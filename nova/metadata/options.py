"""Options of the metadata service as one value; config drives use some of them, too."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from nova import errors
from nova.conf._options import Options
from nova.model.guest.guest_network import TEMPLATE
from nova.model.guest.guest_tree import TreeOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class MetadataOptions:
    """The options. ``behind_proxy``: a signing proxy identifies the calling server. ``secret`` is never logged.
    ``forwarded_for``: a proxy without signatures passes the guest's address. ``in_flight``: concurrent requests of one
    guest.

    ``address_cache_s``: data that are found by address alone are cached for less time than another server needs to get
    that address, boot, and send a request. So no guest can get its predecessor's secrets.
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
    """Read the options, once at the start. Raises metadata.NoSecret and metadata.Template, with the message for the end
    of the process."""
    return MetadataOptions(tree=tree_options(conf), cache_s=conf.api.metadata_cache_expiration,
                           behind_proxy=conf.neutron.service_metadata_proxy,
                           secret=conf.neutron.metadata_proxy_shared_secret,
                           forwarded_for=conf.api.use_forwarded_for)


def tree_options(conf: Options) -> TreeOptions:
    """Return the options for the contents of files. Raises metadata.Template."""
    return TreeOptions(dhcp_domain=conf.api.dhcp_domain or "",
                       network_template=_template(conf.injected_network_template),
                       skip_versions=tuple((conf.api.config_drive_skip_versions or "").split()))


def _template(path: str | None) -> str:
    """Return the operator's template, or nova's. A template in another syntax would reach guests unchanged."""
    if not path:
        return TEMPLATE
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise errors.metadata.Template(reason=f"its file cannot be read: {error.strerror}") from None
    except UnicodeError:
        raise errors.metadata.Template(reason="its file is not UTF-8 text") from None
    if "$interfaces" not in text and "${interfaces}" not in text:
        raise errors.metadata.Template(reason="it must contain the word $interfaces in place of the guest's interfaces")
    return text
