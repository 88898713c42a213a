# Starts threads for ever.
import threading, time
n = 0
try:
    while n < 5000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        n += 1
except (RuntimeError, MemoryError) as e:
    print(e)
print("REACHED" if n > 1000 else n)
