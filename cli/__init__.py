"""The command line `ldp`: one module per command, each with `register(app)`. No maths, no artifact formats."""

__all__: list[str] = []
