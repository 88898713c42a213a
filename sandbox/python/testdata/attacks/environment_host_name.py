# Learns the name of the machine.
import socket, platform
names = {socket.gethostname(), platform.node()}
print("REACHED" if inputs["host"] in names else names)
