"""Calls that wait for a host's work are sent again when the host comes back."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from nova import context, errors
from nova.conductor.hosts.host_calls import HostCalls
from nova.db.models.cell import services
from nova.db.sql.types import later
from nova.model.base import utcnow
from nova.model.guest.orders import Fence, GuestOrder
from nova.model.host.services import Registration
from nova.rpc.contracts.compute import ComputeRPC
from tests.fakes.small_cloud import SmallCloud, until

LATE = utcnow() - datetime.timedelta(seconds=5)
ORDER = GuestOrder(server_uuid="1", instance_name="one", fence=Fence(operation_id=7, epoch=3, start_by=LATE))


class Host:
    """A ComputeRPC client whose calls wait until the test ends them, the first one first."""

    def __init__(self) -> None:
        self.calls: list[Future[Any]] = []
        self.who: list[str] = []
        self.orders: list[Any] = []
        self.reconnections = 0

    def __getattr__(self, name: str) -> Any:
        def ask(**arguments: Any) -> Any:
            answer: Future[Any] = Future()
            self.orders.append(arguments.get("orders", ()))
            self.who.append(context.current().request_id)
            self.calls.append(answer)
            return answer.result(5)
        return ask


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def calls(cloud: SmallCloud, host: Host) -> HostCalls:
    return HostCalls(ComputeRPC, host, cloud.cell, lambda: host.reconnections)


@pytest.fixture
def caller() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


def build(calls: Any, who: str = "req-1") -> Any:
    with context.entered(context.internal(who)):
        return calls.start_guests("a", (ORDER,))


def come_back(cloud: SmallCloud, calls: HostCalls, host: str = "a") -> None:
    row = cloud.rows("cell", sa.select(services.c.host_id).where(services.c.host == host))[0]
    cloud.daemons.register(Registration(host=host, binary="nova-compute", topic="compute", host_id=row.host_id))
    calls.resend_lost_calls()


def begun(host: Host, calls: HostCalls, caller: ThreadPoolExecutor) -> Future[Any]:
    result = caller.submit(build, calls)
    until(lambda: len(host.calls) == 1, "the order is sent")
    calls.resend_lost_calls()
    return result


def test_order_when_its_host_registers_anew_then_it_is_sent_again_and_that_answer_counts(
        cloud: SmallCloud, host: Host, calls: HostCalls, caller: ThreadPoolExecutor) -> None:
    result = begun(host, calls, caller)
    calls.resend_lost_calls()
    assert len(host.calls) == 1
    come_back(cloud, calls)
    until(lambda: len(host.calls) == 2, "the order is sent again")
    (first,), (again,) = host.orders
    assert first == ORDER and (again.fence.operation_id, again.fence.epoch) == (7, 3)
    assert again.fence.start_by > utcnow()  # a host refuses what comes after its time
    host.calls[0].set_exception(errors.Unavailable("the first one was lost"))
    host.calls[1].set_result(("built",))
    assert result.result(5) == ("built",) and host.who == ["req-1", "req-1"]
    come_back(cloud, calls)
    assert len(host.calls) == 2  # nothing waits any more


def test_order_when_the_broker_was_away_then_it_is_sent_again_once(
        host: Host, calls: HostCalls, caller: ThreadPoolExecutor) -> None:
    result = begun(host, calls, caller)
    host.reconnections += 1
    calls.resend_lost_calls()
    until(lambda: len(host.calls) == 2, "the order is sent again")
    calls.resend_lost_calls()
    host.calls[1].set_result(("built",))
    assert result.result(5) == ("built",) and len(host.calls) == 2
    host.calls[0].set_exception(errors.Unavailable("lost with the broker"))


def test_order_when_the_first_one_is_answered_after_all_then_that_counts(
        cloud: SmallCloud, host: Host, calls: HostCalls, caller: ThreadPoolExecutor) -> None:
    result = begun(host, calls, caller)
    come_back(cloud, calls)
    until(lambda: len(host.calls) == 2, "the order is sent again")
    host.calls[0].set_exception(errors.HostRefused("no room"))
    with pytest.raises(errors.HostRefused):
        result.result(5)
    host.calls[1].set_result(("too late",))


def test_order_when_every_try_stays_without_answer_then_the_last_ones_error_counts(
        cloud: SmallCloud, host: Host, calls: HostCalls, caller: ThreadPoolExecutor) -> None:
    result = begun(host, calls, caller)
    come_back(cloud, calls)
    until(lambda: len(host.calls) == 2, "the order is sent again")
    host.calls[1].set_exception(errors.Unavailable("lost too"))
    with pytest.raises(errors.Unavailable, match="lost too"):
        result.result(5)
    host.calls[0].set_exception(errors.Unavailable("lost"))


def test_order_when_another_host_registers_then_it_is_not_sent_again(
        cloud: SmallCloud, host: Host, calls: HostCalls, caller: ThreadPoolExecutor) -> None:
    result = begun(host, calls, caller)
    come_back(cloud, calls, "b")
    host.calls[0].set_result(())
    assert result.result(5) == () and len(host.calls) == 1


def test_look_when_nothing_waits_then_nothing_is_read(host: Host) -> None:
    HostCalls(ComputeRPC, host, None, int).resend_lost_calls()  # type: ignore[arg-type]


def test_question_that_is_short_goes_the_short_way(cloud: SmallCloud, host: Host, calls: Any) -> None:
    asked = threading.Thread(target=lambda: calls.ping(host="a"))
    asked.start()
    until(lambda: len(host.calls) == 1, "it is asked")
    come_back(cloud, calls)
    host.calls[0].set_result("a")
    asked.join(5)
    assert len(host.calls) == 1


def test_order_when_an_administrator_changes_the_hosts_service_then_it_is_not_sent_again(
        cloud: SmallCloud, host: Host, calls: HostCalls, caller: ThreadPoolExecutor) -> None:
    result = begun(host, calls, caller)
    cloud.write("cell", sa.update(services).where(services.c.host == "a").values(
        disabled=True, version=services.c.version + 1, updated_at=utcnow()))
    calls.resend_lost_calls()
    assert len(host.calls) == 1
    come_back(cloud, calls)
    until(lambda: len(host.calls) == 2, "the order is sent again")
    host.calls[1].set_result(("built",))
    assert result.result(5) == ("built",)
    host.calls[0].set_exception(errors.Unavailable("lost"))


@pytest.mark.parametrize(("name", "arguments"), [
    ("start_guests", {"orders": (ORDER,)}), ("ping", {})], ids=["an order", "a question"])
@pytest.mark.parametrize(("seen_s", "words"), [
    (40, "It was last seen 4[0-9] s ago."), (None, "It was never seen."),
    ("away", "the database does not answer.")])
def test_call_when_there_is_no_answer_then_the_error_says_when_the_host_was_last_heard_of(
        cloud: SmallCloud, name: str, arguments: dict[str, Any], seen_s: int | str | None, words: str,
        monkeypatch: pytest.MonkeyPatch) -> None:
    class DisabledNotifier:
        def __getattr__(self, method: str) -> Any:
            def ask(*_args: Any, **_arguments: Any) -> None:
                raise errors.daemon.RpcNoAnswer(topic="compute", where=" on a", method=method, seconds=60)
            return ask
    calls: Any = HostCalls(ComputeRPC, DisabledNotifier(), cloud.cell, int)
    if seen_s == "away":
        def away() -> None:
            raise errors.Unavailable()
        monkeypatch.setattr(cloud.cell, "reading", away)
    else:
        seen = None if seen_s is None else later(-int(seen_s))
        cloud.write("cell", sa.update(services).where(services.c.host == "a").values(last_seen_at=seen))
    with pytest.raises(errors.daemon.RpcNoAnswer, match=f"compute on a did not answer {name} within 60 s.* {words}"):
        getattr(calls, name)("a", **arguments)
