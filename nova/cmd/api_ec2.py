"""nova-api-ec2: serve only the EC2 API."""

from nova.cmd import api


def main() -> int:
    """Run nova-api-ec2 and return its exit code."""
    return api.serve("nova-api-ec2", [api.EC2])


if __name__ == "__main__":
    raise SystemExit(main())
