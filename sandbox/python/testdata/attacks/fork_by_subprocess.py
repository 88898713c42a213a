# Starts programs.
import subprocess, sys
for args in (["sh", "-c", "echo REACHED"], [sys.executable, "-c", "print('REACHED')"]):
    try:
        subprocess.run(args)
        print("REACHED")
    except OSError as e:
        print(e)
