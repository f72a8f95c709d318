"""``manage.py check_agents``: for deploy pipelines: which unfinished runs could today's build not take up?"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agents_runtime import registry
from agents_runtime.errors import AgentUnavailable
from agents_runtime.models import AgentSpec, Run


class Command(BaseCommand):
    """Exits with an error if a run is listed. Run it on a worker with the new code, before the switch."""

    help = "List unfinished runs that began on another build of their agent."

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare the build of each run that has begun with the one that this process imports."""
        begun = Run.objects.live().exclude(state="").select_related("agent")
        builds: dict[str, str] = {}
        stuck = [run for run in begun if run.fingerprint not in {"", _build(run.agent, builds)}]
        for run in stuck:
            self.stdout.write(f"{run.short_id} {run.agent.name} ({run.get_status_display()})")
        if stuck:
            raise CommandError(f"{len(stuck)} run(s) would stop and ask whether to go on with this build.")
        self.stdout.write("Every unfinished run can go on with this build.")


def _build(agent: AgentSpec, builds: dict[str, str]) -> str:
    """Return the fingerprint of an agent's build, or why it has none."""
    if agent.name not in builds:
        try:
            builds[agent.name] = registry.graph_fingerprint(registry.load_graph(agent))
        except AgentUnavailable as problem:
            builds[agent.name] = str(problem)
    return builds[agent.name]
