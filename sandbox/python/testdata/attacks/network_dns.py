# Asks for an address, and tells a secret by it.
import socket
try:
    print("REACHED", socket.getaddrinfo("secret.example.com", 80))
except OSError as e:
    print(e)
