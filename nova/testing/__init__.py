"""Fakes of the services next door, for development and tests only: Keystone and Glance in small, with their APIs.

Each is a WSGI application with its state in memory: ``identity.FakeKeystone`` and ``images.FakeGlance``. Nobody should
trust them with a cloud: nothing is kept, and who has a password is anybody who read it.

A fake is a table of routes over a state (``service.FakeService``): a row has method, path, handler and the rule of who
may ask. Handlers run one at a time, under the service's lock, but for those that carry an image's data.
"""
