"""The Celery application: JSON only, ids only, no result store; the database owns recovery."""

from __future__ import annotations

import os
import sys

from celery import Celery
from celery.signals import worker_init
from kombu.transport import TRANSPORT_ALIASES

from reviewer.config.memory import keep_what_is_loaded

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reviewer.config.settings")

TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "agents_runtime.broker:Transport"))

app = Celery("countersign")
app.config_from_object("django.conf:settings", namespace="CELERY")
# Celery closes Django's whole pool before and after each task otherwise: four new sessions for each run.
app.conf["CELERY_DB_REUSE_MAX"] = sys.maxsize
app.autodiscover_tasks(["agents_runtime"])


@worker_init.connect
def _before_children_are_forked(**_: object) -> None:
    keep_what_is_loaded()
