# Writes bytes that are no text.
import os
os.write(1, bytes(range(256)) * 4)
