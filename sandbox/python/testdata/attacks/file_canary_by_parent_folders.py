# Climbs above the root.
print("REACHED", open("/tmp/" + "../" * 40 + inputs["canary"].lstrip("/")).read())
