"""Chaos: processes, servers, messages and clocks fail on purpose; afterwards the books must balance.

``failpoints`` names where processes die, ``rigged`` runs the product's processes with those points in them,
``deaths``, ``crowds`` and ``product`` play seeded schedules, ``invariants`` checks the books in SQL. The
product itself knows nothing of all this. ``make chaos`` runs the long form, the tests of this package the
short one, and ``make mutants`` proves that they notice when a guard is gone.
"""
