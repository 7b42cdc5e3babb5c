"""nova-novncproxy: screens of servers in browsers, over VNC."""

from nova.cmd import console_proxy


def main() -> int:
    """The program nova-novncproxy; its exit code."""
    return console_proxy.main("nova-novncproxy")


if __name__ == "__main__":
    raise SystemExit(main())
