# Lists the addresses of the machine.
import socket
try:
    names = [n for _, n in socket.if_nameindex()]
    print("REACHED" if set(names) - {"lo"} else names)
except OSError as e:
    print(e)
