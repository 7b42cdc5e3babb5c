"""How programs refuse to start: their own name, and one sentence."""

from __future__ import annotations

import pytest

from nova import configuration


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
