"""The cloud's security mode, on which conductors agree by the database."""

from __future__ import annotations

import logging

from nova import errors
from nova.db.host import security
from nova.db.sql.engine import Database
from nova.model.security.security_modes import SecurityMode

LOG = logging.getLogger(__name__)


def agree_on_mode(cell: Database, asked: SecurityMode) -> SecurityMode:
    """Return the recorded mode; the first conductor records the mode of its configuration. Options of bounded mode in
    an upstream cloud mean that it is moving there, host by host. Raises config.LeavesBoundedMode if the cloud is
    bounded and none of that mode's options is set."""
    recorded = cell.transact(lambda tx: security.record_first(tx, asked))
    if recorded is SecurityMode.BOUNDED and asked is SecurityMode.UPSTREAM:
        raise errors.config.LeavesBoundedMode(others=", [conductor]host_secret_key and [image_proxy]key")
    if recorded is not asked:
        LOG.warning("This configuration requests %s mode, but the cloud is still in %s mode. Move each host with "
                    "'nova-manage host isolate HOST', and finish with 'nova-manage host isolate --all'",
                    asked, recorded)
    return recorded
