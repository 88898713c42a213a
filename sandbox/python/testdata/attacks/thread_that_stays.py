# Leaves a thread that the interpreter would wait for.
import threading
def forever():
    while True:
        pass
threading.Thread(target=forever).start()
