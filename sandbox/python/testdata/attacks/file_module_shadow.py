# Puts a module where the interpreter looks first.
import sys
for p in sys.path:
    try:
        open(p + "/json.py", "w").write("x")
        print("REACHED", p)
    except OSError as e:
        print(e)
