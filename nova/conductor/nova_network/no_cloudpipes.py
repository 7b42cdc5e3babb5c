"""The calls about VPN servers, in a conductor without :mod:`nova.legacy.cloudpipe`."""

from __future__ import annotations

from nova import errors
from nova.model.security.certificates import Cloudpipe

NOT_THERE = "this conductor has no cloudpipe"


class NoCloudpipes:
    """Answers that there is none."""

    def __init__(self, *_: object) -> None:
        pass

    def list_cloudpipes(self) -> tuple[Cloudpipe, ...]:
        """None."""
        return ()

    def create_cloudpipe(self, project_id: str) -> str:
        """network.CloudpipeUnavailable."""
        raise errors.network.CloudpipeUnavailable(reason=NOT_THERE)

    def configure_vpn(self, project_id: str, address: str, port: int) -> None:
        """network.CloudpipeUnavailable."""
        raise errors.network.CloudpipeUnavailable(reason=NOT_THERE)
