# Makes every system call there is, without sense.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
ends = {0, 1, 7, 15, 23, 34, 35, 59, 60, 61, 62, 130, 200, 202, 219, 230, 231, 232, 234, 247, 270, 271, 281, 322, 3, 436, 11, 9, 10, 12, 25, 28, 13, 14, 131, 158, 218, 33, 292, 32, 449, 24}
for number in range(0, 470):
    if number not in ends:
        libc.syscall(number, -1, -1, -1, -1, -1, -1)
print("done")
