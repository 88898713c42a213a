# Connects by other names of the machine.
import socket
for host in ("0.0.0.0", "localhost", "::1", "::ffff:127.0.0.1", "127.1", "169.254.169.254", "10.0.0.1"):
    try:
        socket.create_connection((host, inputs["tcp"]), 0.2).sendall(b"x")
        print("REACHED", host)
    except OSError as e:
        print(e)
