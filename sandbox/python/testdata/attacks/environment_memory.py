# Looks through its own memory for what was there before the interpreter.
import re
canary = re.compile(rb"canary-of-the-[e]nvironment")
found = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as mem:
    for line in maps:
        m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
        if not m:
            continue
        a, b = int(m[1], 16), int(m[2], 16)
        try:
            mem.seek(a)
            found += len(canary.findall(mem.read(min(b - a, 1 << 24))))
        except (OSError, OverflowError, ValueError):
            pass
print("REACHED" if found else "nothing")
