"""nova-xvpvncproxy: screens of servers for the OpenStack-specific VNC viewer."""

from nova.cmd import console_proxy


def main() -> int:
    """The program nova-xvpvncproxy; its exit code."""
    return console_proxy.main("nova-xvpvncproxy")


if __name__ == "__main__":
    raise SystemExit(main())
