"""Volumes of servers: attach, detach, extend, swap and snapshot; servers that boot from volumes."""
