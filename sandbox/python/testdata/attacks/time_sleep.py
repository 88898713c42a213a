# Sleeps. want: code_timeout
import time
time.sleep(3600)
