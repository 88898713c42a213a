# Computes for ever where no signal is heard. want: code_timeout
import re
re.match(r"(a+)+$", "a" * 64 + "b")
