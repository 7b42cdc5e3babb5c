"""Lists by regular expressions: a project has its share of a conductor."""

from __future__ import annotations

import threading
import time

import pytest

from nova import context, errors
from nova.conductor.queries import servers as queries
from nova.model.server.servers import Condition, ServerListQuery
from tests.fakes.small_cloud import SmallCloud

PATTERN = ServerListQuery(conditions=(Condition(column="name", op="regex", value="^v"),))
PLAIN = ServerListQuery(conditions=(Condition(column="name", value="vm"),))


def listing(cloud: SmallCloud, query: ServerListQuery, project: str) -> None:
    with context.entered(context.RequestContext(request_id="req-1", project_id=project)):
        cloud.control.list_servers(query)


def test_list_when_the_projects_patterns_are_under_way_then_too_many_and_others_go_on(
        cloud: SmallCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()
    select = queries.server_lists.select

    def slow(*args):
        begun.release()
        assert go_on.wait(10)
        return select(*args)
    monkeypatch.setattr(queries.server_lists, "select", slow)
    threads = [threading.Thread(target=listing, args=(cloud, PATTERN, "busy")) for _ in range(queries.MATCHED_AT_ONCE)]
    for thread in threads:
        thread.start()
        assert begun.acquire(timeout=10)
    monkeypatch.setattr(queries.server_lists, "select", select)
    with pytest.raises(errors.OverQuota) as refused:
        listing(cloud, PATTERN, "busy")
    assert (refused.value.code, refused.value.status) == ("page.too_many_patterns", 429)
    listing(cloud, PLAIN, "busy")
    listing(cloud, PATTERN, "other")
    go_on.set()
    for thread in threads:
        thread.join(10)
    listing(cloud, PATTERN, "busy")


def test_list_when_a_pattern_fails_then_the_share_is_free_again(cloud: SmallCloud) -> None:
    cloud.boot()
    wrong = ServerListQuery(conditions=(Condition(column="name", op="regex", value="[a"),))
    for _ in range(queries.MATCHED_AT_ONCE + 1):
        with pytest.raises(errors.Invalid):
            listing(cloud, wrong, "busy")


def test_list_when_a_pattern_would_take_for_ever_then_it_is_soon_done(cloud: SmallCloud) -> None:
    cloud.boot(name="a" * 200 + "!")
    hostile = ServerListQuery(conditions=(Condition(column="name", op="regex", value="(a+)+$"),))
    started = time.thread_time()
    listing(cloud, hostile, "busy")
    assert time.thread_time() - started < 1.0
