# Reads memory and disks through /dev.
for p in ("/dev/mem", "/dev/kmem", "/dev/sda", "/dev/vda", "/dev/port", "/dev/kmsg", "/dev/fuse", "/dev/kvm", "/dev/tty", "/dev/console"):
    try:
        open(p, "rb").read(1)
        print("REACHED", p)
    except OSError as e:
        print(e)
