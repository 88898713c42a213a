# Connects to a socket that has a name and no path. outside: REACHED
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("\0" + inputs["abstract"])
print("REACHED")
