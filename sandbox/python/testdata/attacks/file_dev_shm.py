# Leaves something in shared memory of the machine.
import os
try:
    open("/dev/shm/weir-was-here", "w").write("x")
    print("REACHED")
except OSError as e:
    print(e)
from multiprocessing import shared_memory
try:
    shared_memory.SharedMemory("weir-was-here", create=True, size=10)
    print("REACHED")
except OSError as e:
    print(e)
