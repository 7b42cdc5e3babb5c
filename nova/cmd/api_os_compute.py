"""nova-api-os-compute: serve only the compute API."""

from nova.cmd import api


def main() -> int:
    """Run nova-api-os-compute and return its exit code."""
    return api.serve("nova-api-os-compute", [api.OSAPI])


if __name__ == "__main__":
    raise SystemExit(main())
