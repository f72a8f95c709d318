"""Starting Countersign on one machine: its embedded servers, its processes and their supervision.

Nothing here imports Django: this package runs before there are settings, and sets the environment they read.
"""
