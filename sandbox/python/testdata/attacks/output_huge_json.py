# Prints an update that is larger than it may.
import json
print(json.dumps({"context_updates": {"a": "x" * 50_000_000}}))
