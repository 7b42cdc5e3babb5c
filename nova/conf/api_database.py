"""``[api_database]``: the cloud-wide database (flavors, keypairs, quotas, the ledger). See ``[database]``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf._urls import DatabaseUrl
from nova.conf.database import POOL

GROUP = "api_database"

OPTS = [cfg.Opt("connection", type=DatabaseUrl(), secret=True, help="URL of the api database."), *POOL]


class ApiDatabaseOptions(Section, frozen=True, kw_only=True):
    """Values of ``[api_database]``."""

    connection: str | None
    max_pool_size: int
    max_overflow: int
    connection_recycle_time: int
