"""Metrics and health of a daemon: ``/metrics``, ``/health/live``, ``/health/ready``.

Each daemon has one address, for any number of workers: the socket is bound before they fork, and any of them may
respond. All of them read each other's counters from files (prometheus_client's multiprocess mode).
"""
