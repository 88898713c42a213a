# Reads the passwords.
print("REACHED", open("/etc/shadow").read())
