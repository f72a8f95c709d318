"""The agents that Countersign ships: a compliance desk's daily work, harmless, one file each.

Each is a plain ``create_agent`` with LangChain's own ``HumanInTheLoopMiddleware``, as anybody would write it,
and is registered through the langgraph.json beside it. Shared by them: ``briefing`` (from form to message),
``history`` (what a script reads) and ``effects`` (the file that shows which tools really ran).
"""
