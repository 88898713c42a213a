# Talks to the host of the virtual machine, and through other families.
import socket
for family in range(1, 46):
    try:
        socket.socket(family, socket.SOCK_STREAM)
        print("REACHED", family)
    except OSError:
        pass
