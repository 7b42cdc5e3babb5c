"""A conductor without nova.legacy.cloudpipe: lists are empty, and commands say why they cannot be carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nova import context, errors
from tests.fakes.small_cloud import DEMO, SmallCloud


def test_list_when_there_are_no_cloudpipes_then_it_is_empty(cloud: SmallCloud) -> None:
    with context.entered(DEMO):
        assert cloud.control.list_cloudpipes() == ()


@pytest.mark.parametrize("call", [lambda control: control.create_cloudpipe("demo"),
                                  lambda control: control.configure_vpn("demo", "192.0.2.1", 1194)],
                         ids=["create", "configure"])
def test_command_when_there_are_no_cloudpipes_then_it_is_refused_with_the_reason(
        cloud: SmallCloud, call: Callable[[Any], object]) -> None:
    with context.entered(DEMO), pytest.raises(errors.NovaError, match="this conductor has no cloudpipe") as refused:
        call(cloud.control)
    assert refused.value.code == errors.network.CloudpipeUnavailable.code
