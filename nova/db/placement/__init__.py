"""Resource providers as Placement's API reads and changes them: one module a noun.

Whoever changes anything in a tree locks its root's row first (:func:`locks.tree`), as claims do; consumers that are
named are locked before the roots.
"""
