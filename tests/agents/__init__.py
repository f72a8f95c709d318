"""Agents for the tests: their model plays what the input scripts, and their tools leave traces on disk."""
