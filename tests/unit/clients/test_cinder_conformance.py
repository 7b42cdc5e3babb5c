"""The volume service in small answers as a real one does (``tests/machine/test_cinder_conformance.py``)."""

from __future__ import annotations

import pytest

from nova import context
from tests.contract.cinder_cases import CinderCases, Cloud
from tests.fakes.cinder import FakeCinder

DEMO = "d" * 32


class TestCinderInSmall(CinderCases):
    @pytest.fixture
    def cloud(self):
        with FakeCinder(tokens={"demo's": DEMO}) as fake:
            user = context.RequestContext(request_id="req-1", token="demo's", project_id=DEMO)
            yield Cloud(fake.client(), user, {"host": "node1"}, fake.quotas.__setitem__)
            assert fake.unsettled() == {}
