"""``[database]``: the cell's. Read by nova-conductor and nova-manage alone, from nova-conductor.conf (0600)."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "database"

POOL = [
    cfg.IntOpt("max_pool_size", default=5, min=1, help="Connections kept open."),
    cfg.IntOpt("max_overflow", default=50, min=0, help="Connections beyond that under load."),
    cfg.IntOpt("connection_recycle_time", default=3600, min=1,
               help="Seconds after which a connection is replaced: below the server's own limit."),
]

OPTS = [
    cfg.StrOpt("connection", secret=True,
               help="URL of the cell database: mysql+pymysql://nova:secret@db/nova, postgresql+psycopg://..., "
                    "or sqlite:////var/lib/nova/nova.db. It belongs in nova-conductor.conf, readable by nova alone."),
    *POOL,
]
