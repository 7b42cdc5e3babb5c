"""nova-api-os-compute: the compute API alone."""

from nova.cmd import api


def main() -> int:
    """The program nova-api-os-compute; its exit code."""
    return api.serve("nova-api-os-compute", [api.OSAPI])


if __name__ == "__main__":
    raise SystemExit(main())
