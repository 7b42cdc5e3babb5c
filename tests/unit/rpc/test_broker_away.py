"""What is raised where the broker cannot be reached, whichever library notices it first."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import oslo_messaging
import pytest
from amqp.exceptions import RecoverableConnectionError
from kombu.exceptions import OperationalError
from oslo_config import cfg

from nova import errors
from nova.conf import register
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.control_driver import ControlDriver
from nova.rpc.transport import Asking, Bus, open_transport


class Unreachable:
    """A client of oslo.messaging's whose connection cannot be made."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def prepare(self, **_: object) -> Unreachable:
        return self

    def call(self, *_: object, **__: object) -> None:
        raise self.error

    cast = call


@pytest.mark.parametrize("error", [OperationalError("[Errno 111] refused"), ConnectionRefusedError(111, "refused"),
                                   oslo_messaging.MessageDeliveryFailure("no connection")],
                         ids=lambda error: type(error).__name__)
def test_call_when_the_broker_cannot_be_reached_then_it_is_away_whoever_noticed(error: Exception) -> None:
    asking = Asking(ConductorRPC, ConductorRPC.methods["ping"], None, 5, None)
    with pytest.raises(errors.daemon.RpcBrokerAway) as away:
        Bus._send_once(Unreachable(error), asking, {})
    assert isinstance(away.value, errors.Unavailable) and "ping" in away.value.message


class Connection:
    """A connection that answers the question for an exchange with ``found``, or with that error."""

    def __init__(self, found: bool | Exception) -> None:
        self.found = found

    def has_exchange(self, name: str) -> bool:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


class Undelivering(Bus):
    """A bus whose messages have no queue, on a broker that then says ``found`` of the conductors' exchange."""

    def __init__(self, conf: cfg.ConfigOpts, found: bool | Exception) -> None:
        self._found = found
        super().__init__(conf, "host1")

    def _open(self) -> oslo_messaging.transport.RPCTransport:
        found = self._found

        class Driver(ControlDriver):
            @contextlib.contextmanager
            def _get_connection(self, *_: object, **__: object) -> Iterator[Connection]:
                yield Connection(found)

        return open_transport(self.conf, Driver)

    @staticmethod
    def _send_once(client: object, asking: Asking, envelope: object) -> None:
        raise errors.daemon.RpcNotDelivered(method="ping", topic="conductor", where="", seconds=5)


@pytest.mark.parametrize(("found", "expected"), [
    (RecoverableConnectionError("Socket closed"), errors.daemon.RpcBrokerAway),
    (ConnectionResetError(104, "reset"), errors.daemon.RpcBrokerAway),
    (False, errors.daemon.RpcNoConductorYet), (True, errors.daemon.RpcNotDelivered)], ids=str)
def test_call_when_no_conductor_takes_it_and_the_broker_is_asked_then_its_loss_is_told_from_its_answer(
        tmp_path: Path, found: bool | Exception, expected: type[errors.Unavailable]) -> None:
    file = tmp_path / "nova.conf"
    file.write_text("[DEFAULT]\ntransport_url = rabbit://nova:secret@127.0.0.1/cloud\n")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(file)])
    register(conf)
    with pytest.raises(errors.Unavailable) as refusal:
        Undelivering(conf, found)._deliver(Asking(ConductorRPC, ConductorRPC.methods["ping"], None, 5, None), {})
    assert type(refusal.value) is expected
