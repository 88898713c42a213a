# Writes next to the canary. outside: REACHED
import os
path = os.path.join(inputs["dir"], "was-here")
open(path, "w").write("x")
print("REACHED", os.path.exists(path))
