"""What can stop a start. Each error's text is the one line that a person sees."""


class LaunchError(Exception):
    """Countersign cannot start, or cannot go on; the text says why and what to do."""
