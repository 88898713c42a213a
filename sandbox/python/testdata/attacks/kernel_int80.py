# Calls the 32-bit kernel by an interrupt, from memory that it may execute.
import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
m.write(b"\xb8\x02\x00\x00\x00\xcd\x80\xc3")  # fork
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
print("REACHED" if call() > 0 else "refused")
