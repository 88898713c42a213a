# Makes more files than a file system can take.
n = 0
try:
    for n in range(10_000_000):
        open("/tmp/f%d" % n, "w").close()
except OSError as e:
    print(e)
print("REACHED" if n > 1_000_000 else n)
