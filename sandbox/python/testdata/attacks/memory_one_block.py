# Takes a block that is larger than the machine.
b = bytearray(1 << 45)
