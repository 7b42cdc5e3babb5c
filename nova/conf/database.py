"""``[database]``: the cell's. Read by nova-conductor and nova-manage alone, from nova-conductor.conf (0600)."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._urls import DatabaseUrl

GROUP = "database"

POOL = [
    cfg.IntOpt("max_pool_size", default=10, min=1,
               help="Connections a process keeps open to this database. More work waits its turn, which is faster than "
                    "more transactions in each other's way. The server must allow workers x (this + max_overflow)."),
    cfg.IntOpt("max_overflow", default=0, min=0,
               help="Connections beyond that under load, closed after use (upstream's default is 50: making a "
                    "connection costs more than a statement)."),
    cfg.IntOpt("connection_recycle_time", default=3600, min=1,
               help="Seconds after which a connection is replaced: below the server's own limit."),
]

OPTS = [
    cfg.Opt("connection", type=DatabaseUrl(), secret=True,
               help="URL of the cell database: mysql+pymysql://nova:secret@db/nova, postgresql+psycopg://..., "
                    "or sqlite:////var/lib/nova-conductor/nova.db. It belongs in nova-conductor.conf, readable by its user "
                    "alone."),
    *POOL,
]
