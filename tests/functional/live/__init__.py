"""The judge of the API: a live cloud's answers held against the contract's shapes, codes and published samples.

``caller.Live`` makes the calls and judges each answer; ``normal`` says when an answer is like a sample; ``scope``
names what waits for a later release; the other modules are the scenarios, one a resource, found by ``scenario``.
"""
