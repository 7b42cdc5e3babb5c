"""For those who test clients of the cloud: a whole cloud for a test, and the fakes of Keystone, Glance and Neutron
it has.

    from nova.devel import cloud              # in conftest.py: a pytest fixture, a running cloud for each test
    from nova.devel import session_cloud      # one for all tests of a run

Without pytest: ``running.RunningCloud``. The fakes are ``identity.FakeKeystone``, ``image.FakeGlance`` and
``network.FakeNeutron``, WSGI applications for development only: nobody should trust them with a cloud. A fake is a
table of routes over a state (``service.FakeService``): a row has method, path, handler and the rule of who may ask.
Handlers run one at a time, under the service's lock, but for those that carry an image's data.
"""

from __future__ import annotations

FIXTURES = ("cloud", "session_cloud")


def __getattr__(name: str) -> object:
    """The fixtures, for who has pytest: nobody else needs it."""
    if name not in FIXTURES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nova.devel import fixtures

    return getattr(fixtures, name)
