# Forks for ever.
import os
while True:
    try:
        os.fork()
    except OSError as e:
        print(e)
        break
