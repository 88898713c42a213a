# Takes shared memory, which limits of the address space may not count.
import mmap
maps = []
while True:
    m = mmap.mmap(-1, 16 << 20, mmap.MAP_SHARED)
    m.write(b"x" * (16 << 20))
    maps.append(m)
