# Reads the environment of who started it. outside: REACHED
import os
print("REACHED" if os.environ.get(inputs["variable"]) else dict(os.environ))
