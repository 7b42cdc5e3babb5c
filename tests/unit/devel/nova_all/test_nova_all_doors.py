"""Ports of nova-all that are in use."""

from __future__ import annotations

import socket

import pytest

from nova import errors
from nova.devel.nova_all import cloud, plan


@pytest.mark.parametrize("option", ["--port", "--console-port", "--serial-port", "--s3-port"])
def test_doors_when_a_port_is_in_use_then_the_words_name_it_and_its_option(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(errors.service.CannotStart, match=rf"port {port} of 127.0.0.1 .*{option} \(0: any free"):
            cloud.bind_listeners(plan.parse(["--port", "0", option, str(port)]))
