"""Driver without a hypervisor: for tests, load, and a cloud on a laptop."""

from nova.devel.fake.driver import FakeDriver

__all__ = ["FakeDriver"]
