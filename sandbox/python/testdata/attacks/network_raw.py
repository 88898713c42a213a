# Sends packets of its own making.
import socket
for family, kind, proto in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_PACKET, socket.SOCK_RAW, 3), (16, socket.SOCK_RAW, 0), (socket.AF_INET6, socket.SOCK_RAW, 58)):
    try:
        socket.socket(family, kind, proto)
        print("REACHED", family)
    except OSError as e:
        print(e)
