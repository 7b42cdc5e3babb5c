"""What a fleet on which nothing happens costs the database."""

from __future__ import annotations

import sqlalchemy as sa

from nova.db.models.cell import services
from nova.db.sql.types import later
from nova.model.host.services import Heartbeat
from tests.fakes.rows import new_uuid
from tests.fakes.small_cloud import SmallCloud

HOSTS, REPORT_S, MINUTE_S = 200, 30, 60


def test_fleet_when_it_is_idle_then_a_host_costs_under_two_statements_a_minute(cloud: SmallCloud) -> None:
    """Beats come spread over the interval; each second's are written at once."""
    names = [f"host{number}" for number in range(HOSTS)]
    cloud.write("cell", sa.insert(services).values([
        {"uuid": new_uuid(), "host": name, "binary": "nova-compute", "created_at": later(0), "last_seen_at": later(0)}
        for name in names]))
    for name in names:  # each conductor looks a host up once
        cloud.daemons.heartbeat(Heartbeat(host=name, binary="nova-compute"))
    cloud.daemons.flush()
    seen: list[str] = []
    for database in (cloud.api, cloud.cell):
        sa.event.listen(database.engine, "before_cursor_execute", lambda *args: seen.append(str(args[2])))
    for second in range(MINUTE_S):
        for name in names[second % REPORT_S::REPORT_S]:
            cloud.daemons.heartbeat(Heartbeat(host=name, binary="nova-compute"))
        cloud.daemons.flush()
    written = [text for text in seen if not text.startswith(("BEGIN", "COMMIT", "ROLLBACK"))]
    assert MINUTE_S <= len(written) <= 2 * HOSTS, len(written)
