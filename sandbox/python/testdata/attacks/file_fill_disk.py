# Fills the disk.
n = 0
try:
    while True:
        with open("/tmp/big%d" % n, "wb") as f:
            for _ in range(8):
                f.write(b"x" * (1 << 20))
        n += 8
        if n > 2000:
            print("REACHED", n)
            break
except OSError as e:
    print(e)
