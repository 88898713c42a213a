# Looks for keys in homes.
import os
found = []
for home in ("/root", "/home", os.path.expanduser("~")):
    for base, dirs, files in os.walk(home):
        found += [f for f in files if f.startswith("id_") or f in (".bash_history", ".netrc", "credentials")]
if found:
    print("REACHED", found)
