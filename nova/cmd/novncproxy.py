"""nova-novncproxy: screens of servers in browsers, over VNC."""

from nova.cmd import console_proxy


def main() -> int:
    return console_proxy.main("nova-novncproxy")


if __name__ == "__main__":
    raise SystemExit(main())
