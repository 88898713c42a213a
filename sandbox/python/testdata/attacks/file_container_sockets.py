# Talks to the daemons of containers.
import socket
for p in ("/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/dbus/system_bus_socket"):
    try:
        socket.socket(socket.AF_UNIX).connect(p)
        print("REACHED", p)
    except OSError as e:
        print(e)
