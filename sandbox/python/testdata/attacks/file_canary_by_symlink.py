# Follows a link that the code makes itself. outside: REACHED
import os, tempfile
link = os.path.join(tempfile.mkdtemp(), "link")
os.symlink(inputs["canary"], link)
print("REACHED", open(link).read())
