# Writes a program and starts it.
import os
open("/tmp/run", "w").write("#!/usr/bin/python3\nprint('REACHED')\n")
os.chmod("/tmp/run", 0o755)
os.execv("/tmp/run", ["/tmp/run"])
