"""The toolbox: its tools, and how a call is guarded and recorded."""
