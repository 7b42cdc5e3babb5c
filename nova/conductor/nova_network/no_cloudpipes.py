"""Calls about VPN servers in a conductor without :mod:`nova.legacy.cloudpipe`."""

from __future__ import annotations

from nova import errors
from nova.model.security.certificates import Cloudpipe

NOT_THERE = "this conductor has no cloudpipe"


class NoCloudpipes:
    """Calls that report the absence of cloudpipes."""

    def __init__(self, *_: object) -> None:
        pass

    def list_cloudpipes(self) -> tuple[Cloudpipe, ...]:
        """Return an empty list."""
        return ()

    def create_cloudpipe(self, project_id: str) -> str:
        """Refuse to create a cloudpipe. Raises network.CloudpipeUnavailable."""
        raise errors.network.CloudpipeUnavailable(reason=NOT_THERE)

    def configure_vpn(self, project_id: str, address: str, port: int) -> None:
        """Refuse to configure a VPN. Raises network.CloudpipeUnavailable."""
        raise errors.network.CloudpipeUnavailable(reason=NOT_THERE)
