# Reads it through the root of the first process.
print("REACHED" if "canary" in open("/proc/1/root" + inputs["canary"]).read() else "other")
