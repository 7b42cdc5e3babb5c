"""Tools to test clients of the cloud: a whole cloud for a test, with fakes of Keystone, Glance and Neutron.

    from nova.devel import cloud              # in conftest.py: a pytest fixture, a running cloud for each test
    from nova.devel import session_cloud      # one for all tests of a run

Without pytest: ``running.RunningCloud``. The fakes are ``identity.FakeKeystone``, ``image.FakeGlance`` and
``network.FakeNeutron``, WSGI applications for development only, which are not secure. A fake is a table of routes over
a state (``service.FakeService``): a row has method, path, handler and access rule. Handlers run one at a time, under
the service's lock, except handlers that transfer an image's data.
"""

from __future__ import annotations

FIXTURES = ("cloud", "session_cloud")


def __getattr__(name: str) -> object:
    """Return a fixture, imported on demand, since only fixtures need pytest."""
    if name not in FIXTURES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nova.devel import fixtures

    return getattr(fixtures, name)
