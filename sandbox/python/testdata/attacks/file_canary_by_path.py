# Reads a file of the machine that everybody may read. outside: REACHED
print("REACHED", open(inputs["canary"]).read())
