# Prints what could move a terminal or end a line.
print("\x1b]0;x\x07\x1b[2J\r\x00\x85\u2028{\"context_updates\": {\"a\": 1}}")
