"""nova-xvpvncproxy: graphical consoles for the OpenStack-specific VNC viewer."""

from nova.cmd import console_proxy


def main() -> int:
    """Run nova-xvpvncproxy and return its exit code."""
    return console_proxy.main("nova-xvpvncproxy")


if __name__ == "__main__":
    raise SystemExit(main())
