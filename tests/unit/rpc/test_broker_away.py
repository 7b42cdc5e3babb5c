"""What is raised where the broker can not be reached, whichever library notices it first."""

from __future__ import annotations

import oslo_messaging
import pytest
from kombu.exceptions import OperationalError

from nova import errors
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.transport import Asking, Bus


class Unreachable:
    """A client of oslo.messaging's whose connection can not be made."""

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
def test_call_when_the_broker_can_not_be_reached_then_it_is_away_whoever_noticed(error: Exception) -> None:
    asking = Asking(ConductorRPC, ConductorRPC.methods["ping"], None, 5, None)
    with pytest.raises(errors.daemon.RpcBrokerAway) as away:
        Bus._send_once(Unreachable(error), asking, {})
    assert isinstance(away.value, errors.Unavailable) and "ping" in away.value.message
