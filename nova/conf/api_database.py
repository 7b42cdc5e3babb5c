"""``[api_database]``: the cloud-wide database (flavors, keypairs, quotas, the ledger). See ``[database]``."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._urls import DatabaseUrl
from nova.conf.database import POOL

GROUP = "api_database"

OPTS = [cfg.Opt("connection", type=DatabaseUrl(), secret=True, help="URL of the api database."), *POOL]
