# Breaks what the collector relies on.
import gc, sys, ctypes
gc.set_threshold(1)
for o in gc.get_objects():
    if isinstance(o, dict) and "run" in o and "left" in o:
        o.clear()
context["a"] = 1
