# Connects to a socket in the file system. outside: REACHED
import socket
s = socket.socket(socket.AF_UNIX)
s.connect(inputs["unix"])
print("REACHED")
