"""`make bench`: how long people and agents wait for the product, beside what they would wait without it.

One module for each subject, named on the command line (`make bench ONLY="runtime click"`); each has a
function ``measure(product)`` that prints its figures. What is compared runs in turn, in one process on one
database server, so that load from outside falls on all alike. Nothing here decides whether a build is good:
times differ from machine to machine, and the tests pin counts instead.
"""
