# Sets the clock.
import ctypes, time
libc = ctypes.CDLL(None, use_errno=True)
for do in (lambda: time.clock_settime(time.CLOCK_REALTIME, 0),):
    try:
        do()
        print("REACHED")
    except OSError as e:
        print(e)
for number in (164, 159, 305, 227):
    if libc.syscall(number, bytes(208), bytes(208)) == 0 and number != 159:
        print("REACHED", number)
