# Walks all of the file system and greps it for the canary.
import os, re, time
end = time.time() + 1.2
for base, dirs, files in os.walk("/"):
    dirs[:] = [d for d in dirs if d not in ("proc", "python3.11")]
    for f in files:
        if time.time() > end:
            raise SystemExit
        try:
            with open(os.path.join(base, f), "rb") as h:
                if re.search(rb"canary-of-the-[m]achine", h.read(1 << 20)):
                    print("REACHED", base, f)
        except OSError:
            pass
