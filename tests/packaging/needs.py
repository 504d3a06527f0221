"""The third parties that the library imports, by what they are imported for; docs/deploying.md says the same."""

TASK = ("pyarrow", "msgpack", "anyio", "idna", "typing_extensions")
"""By every task; the last two are AnyIO's."""

LOOP = ("trio", "attr", "attrs", "outcome", "sniffio", "sortedcontainers")
"""By a task that puts its own markers: told to, or out of reach of the service. All but the first are Trio's."""

OBJECT_STORES = ("obstore",)

COMMAND_LINE = ("click", "rich", "pygments", "markdown_it", "mdurl")
