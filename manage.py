#!/usr/bin/env python
"""Django's command line for Countersign."""

import os
import sys

from django.core.management import execute_from_command_line

from reviewer.launch.beside import adopt

if __name__ == "__main__":
    adopt(os.environ)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reviewer.config.settings")
    execute_from_command_line(sys.argv)
