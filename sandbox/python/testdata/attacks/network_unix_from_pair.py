# Sends from one of a pair of sockets to a name.
import socket
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
for name in ("\0" + inputs["abstract"], inputs["unix"], "\0" + inputs["abstract"] + "-datagrams"):
    try:
        a.sendto(b"x", name)
        print("REACHED")
    except OSError as e:
        print(e)
