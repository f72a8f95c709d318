"""The baseline: the same agent on LangGraph's own PostgresSaver, with the same durability, and nothing else.

Its checkpoints go to a schema of their own in the same database.
"""

import uuid
from typing import Any

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command
from psycopg.rows import DictRow, dict_row

from tests.bench.agent import one_gate
from tests.bench.figures import Times
from tests.bench.product import APPROVE, INPUT

SCHEMA = "bench_bare"


def make_tables(owner_url: str) -> None:
    """Make the schema that everybody may use."""
    with psycopg.connect(owner_url, autocommit=True, row_factory=dict_row) as link:
        link.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        link.execute(f"SET search_path = {SCHEMA}")
        PostgresSaver(link).setup()


class Bare:
    """One graph over one connection."""

    def __init__(self, owner_url: str) -> None:
        link: psycopg.Connection[DictRow] = psycopg.connect(
            owner_url,
            autocommit=True,
            prepare_threshold=0,
            row_factory=dict_row,
            options=f"-c search_path={SCHEMA}",
        )
        self._graph: Any = one_gate().copy({"checkpointer": PostgresSaver(link)})

    def cycle(self, times: Times) -> None:
        """Run to the pause, approve, run to the end."""
        config: RunnableConfig = {"configurable": {"thread_id": str(uuid.uuid4())}}
        with times.taking("start to pause"):
            result = self._graph.invoke(INPUT, config, durability="sync")
        (raised,) = result["__interrupt__"]
        with times.taking("answer to finish"):
            result = self._graph.invoke(Command(resume={raised.id: APPROVE}), config, durability="sync")
        assert result["messages"][-1].content == "It is sent."
