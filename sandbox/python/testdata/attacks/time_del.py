# Goes on in the end of an object. want: code_timeout
import threading
class Stays:
    def __del__(self):
        while True:
            pass
Stays()
