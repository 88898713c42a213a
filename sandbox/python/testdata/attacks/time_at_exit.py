# Begins again when it ends. want: code_timeout
import atexit
def again():
    while True:
        pass
atexit.register(again)
