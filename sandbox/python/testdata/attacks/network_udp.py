# Sends a datagram. outside: REACHED
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"hello", ("127.0.0.1", inputs["udp"]))
print("REACHED")
