# Reads from nowhere. want: code_killed
import ctypes
ctypes.string_at(1)
