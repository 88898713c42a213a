# Reads who has an account. outside: REACHED
print("REACHED", open("/etc/passwd").read()[:40])
