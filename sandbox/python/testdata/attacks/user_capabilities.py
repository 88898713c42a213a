# Takes back capabilities.
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
head = ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0))
data = ctypes.create_string_buffer(struct.pack("<6I", *([0xFFFFFFFF] * 6)))
print("REACHED" if libc.capset(head, data) == 0 else ctypes.get_errno())
for line in open("/proc/self/status"):
    if line.startswith(("CapEff", "CapPrm", "CapBnd", "CapAmb")) and int(line.split()[1], 16):
        print("REACHED", line)
