"""Whatever a client asks of whichever action, it is answered or refused in words: never an error of ours."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.legacy.ec2.actions import ACTIONS
from nova.legacy.ec2.parameters import public_name
from tests.fakes.ec2 import ADMIN, DEMO, OLD, TODAY, Ec2Client
from tests.sampling import examples

#: Values that clients send, and some that none should.
TEXTS = ["", "0", "1", "-1", "80", "65536", "2147483648", "true", "false", "none", "tcp", "icmp", "all", "self", "add",
         "i-00000001", "vol-00000002", "snap-00000003", "ami-00000004", "sg-00000005", "sgr-00000001", "subnet-1",
         "eipalloc-00000001", "i-zz", "vol-", "default", "demo", "10.0.0.0/8", "::/0", "0.0.0.0/0", "203.0.113.5",
         "/dev/vda", "/dev/vdb", "ephemeral0", "swap", "nova", "nova:host1", "verbose", "m1.small", "tiny", "aGVsbG8=",
         "launchPermission", "instanceType", "groupSet", "kernel", "terminate", "tag:a", "instance-id", "name", "*",
         "\\", "a" * 300, "\N{SNOWMAN}", "\x00", "\udcff", "a,b", "'\"<&>"]
VALUES = st.sampled_from(TEXTS) | st.binary(max_size=10).map(lambda data: data.decode("utf-8", "surrogateescape"))


def names(wanted: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """Every parameter of an action, lists with one member."""
    hints = typing.get_type_hints(wanted)
    for field in msgspec.structs.fields(wanted):
        name, hint = f"{prefix}{public_name(field.name)}", hints[field.name]
        if isinstance(hint, types.UnionType):
            hint = next(one for one in typing.get_args(hint) if one is not type(None))
        if typing.get_origin(hint) is tuple:
            name, hint = f"{name}.1", typing.get_args(hint)[0]
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from names(hint, f"{name}.")
        else:
            yield name


def furnished() -> Ec2Client:
    client = Ec2Client()
    conductor = client.conductor
    server, volume = conductor.add_server(metadata={"a": "b"}), conductor.add_volume()
    snapshot, image = conductor.add_volume_snapshot(), conductor.add_image(owner="demo", status="active")
    for prefix, id in (("i", server.uuid), ("vol", volume.id), ("snap", snapshot.id), ("ami", image.id)):
        conductor.number(prefix, id)
    conductor.add_flavor("1", name="m1.small")
    conductor.add_floating("203.0.113.5")
    conductor.add_network()
    conductor.given(register_image=image, update_image=image)
    client.ask("DescribeSecurityGroups")
    return client


@pytest.mark.parametrize("action", sorted(ACTIONS))
@settings(max_examples=examples(12, 60), deadline=None)
@given(data=st.data())
def test_request_when_it_has_any_values_then_it_is_no_error_of_ours(action: str, data: Any) -> None:
    known = sorted(names(ACTIONS[action].arguments))
    params = data.draw(st.dictionaries(st.sampled_from(known), VALUES, max_size=8))
    user, version = data.draw(st.sampled_from([DEMO, ADMIN])), data.draw(st.sampled_from([TODAY, OLD]))
    answer = furnished().ask(action, params, user, version)
    assert answer.status != 500, (params, answer.body)
    assert answer.status == 200 or (answer.code and answer.message)
