"""A driver without a hypervisor: for tests, load, and a cloud on a laptop."""

from nova.virt.fake.driver import FakeDriver

__all__ = ["FakeDriver"]
