# Links the file of the machine into a folder of its own.
import os
os.link(inputs["canary"], "/tmp/hard")
print("REACHED", open("/tmp/hard").read())
