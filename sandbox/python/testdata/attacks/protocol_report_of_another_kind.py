# Claims an outcome that there is none of. want: code_killed
import os
os.write(3, b'{"kind":"sandbox_escape","context":{"a":1},"line":-5}')
os._exit(0)
