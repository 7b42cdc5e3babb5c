"""``etc/nova/policy.yaml.sample``, from ``nova.policies``."""

from nova.policies.sample import sample

__all__ = ["sample"]
