"""How programs refuse to start: their own name, and one sentence."""

from __future__ import annotations

import socket

import pytest

from nova import configuration, errors
from nova.devel.nova_all import cloud, plan


@pytest.mark.parametrize(("path", "name"), [
    ("/usr/bin/nova-api", "nova-api"), ("/srv/nova/cmd/api_metadata.py", "nova-api-metadata"),
    ("/srv/nova/cmd/all.py", "nova-all"), ("/srv/nova/manage/main.py", "main.py"), ("", "")])
def test_program_when_it_was_started_any_way_then_it_has_the_name_that_operators_type(path: str, name: str) -> None:
    assert configuration.program(path) == name


def test_refusal_when_a_program_fails_then_it_is_one_line_and_status_2(capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/nova-api"])
    with pytest.raises(SystemExit) as ended:
        configuration.fail("the port is in use")
    assert ended.value.code == 2 and capsys.readouterr().err == "nova-api: the port is in use\n"


@pytest.mark.parametrize("option", ["--port", "--console-port", "--serial-port", "--s3-port"])
def test_doors_when_a_port_is_in_use_then_the_words_name_it_and_its_option(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(errors.service.CanNotStart, match=rf"port {port} of 127.0.0.1 .*{option} \(0: a free one\)"):
            cloud.open_doors(plan.parse(["--port", "0", option, str(port)]))
