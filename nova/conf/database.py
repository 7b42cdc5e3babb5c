"""``[database]``: the cell database. Read only by nova-conductor and nova-manage, from nova-conductor.conf (0600)."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf._urls import DatabaseUrl

GROUP = "database"

POOL = [
    cfg.IntOpt("max_pool_size", default=10, min=1,
               help="Number of connections that a process keeps open to this database. More work waits, which is "
                    "faster than more conflicting transactions. The server must allow workers x (max_pool_size + "
                    "max_overflow)."),
    cfg.IntOpt("max_overflow", default=0, min=0,
               help="Number of additional connections under load, closed after use (upstream's default is 50: "
                    "opening a connection costs more than a statement)."),
    cfg.IntOpt("connection_recycle_time", default=3600, min=1,
               help="Seconds after which a connection is replaced: less than the server's own limit."),
]

OPTS = [
    cfg.Opt("connection", type=DatabaseUrl(), secret=True,
               help="URL of the cell database: mysql+pymysql://nova:secret@db/nova, postgresql+psycopg://..., or "
                    "sqlite:////var/lib/nova-conductor/nova.db. It belongs in nova-conductor.conf, readable only by "
                    "its user."),
    *POOL,
]


class DatabaseOptions(Section, frozen=True, kw_only=True):
    """Values of ``[database]``."""

    connection: str | None
    max_pool_size: int
    max_overflow: int
    connection_recycle_time: int
