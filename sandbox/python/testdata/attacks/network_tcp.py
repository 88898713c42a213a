# Connects to a server on the machine. outside: REACHED
import socket
s = socket.create_connection(("127.0.0.1", inputs["tcp"]), 1)
s.sendall(b"hello")
print("REACHED")
